# problem: shares
# loses: shares-right
# reason: prediction is wrong for 5 of 7

prediction = {
    "spinning: NVML utilisation": 80,
    "spinning: SM activity": 80,
    "in turn: NVML utilisation": 4 * 25 * 8 / 10,
    "in turn: SM activity": 80,
    "together: NVML utilisation": 80,
    "together: SM activity": 80,
    "together: occupancy": 80,
}
