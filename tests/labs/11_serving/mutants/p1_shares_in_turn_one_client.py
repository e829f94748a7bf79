# problem: shares
# loses: shares-right
# reason: prediction is wrong for 2 of 7: 'in turn

prediction = {
    "spinning: NVML utilisation": 80,
    "spinning: SM activity": 80 / 40,
    "in turn: NVML utilisation": 20,
    "in turn: SM activity": 4,
    "together: NVML utilisation": 25 * 8 / 10,
    "together: SM activity": 20 * 4 * 8 / 40,
    "together: occupancy": 100 * (256 / 32) / 32,
}
