# problem: shares
# loses: shares-right
# reason: prediction has no finite number for 'spinning: NVML utilisation'

prediction = {
    "spinning: NVML utilisation": "80 %",
    "spinning: SM activity": 80 / 40,
    "in turn: NVML utilisation": 4 * 25 * 8 / 10,
    "in turn: SM activity": 80 * 8 / 40,
    "together: NVML utilisation": 25 * 8 / 10,
    "together: SM activity": 20 * 4 * 8 / 40,
    "together: occupancy": 100 * (256 / 32) / 32,
}
