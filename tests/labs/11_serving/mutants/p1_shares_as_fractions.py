# problem: shares
# loses: shares-right
# reason: prediction is wrong for 7 of 7

prediction = {
    "spinning: NVML utilisation": 0.8,
    "spinning: SM activity": 0.02,
    "in turn: NVML utilisation": 0.8,
    "in turn: SM activity": 0.16,
    "together: NVML utilisation": 0.2,
    "together: SM activity": 0.16,
    "together: occupancy": 0.25,
}
