# problem: shares
# loses: shares-right
# reason: prediction has no number yet

prediction = {
    "spinning: NVML utilisation": None,
    "spinning: SM activity": None,
    "in turn: NVML utilisation": None,
    "in turn: SM activity": None,
    "together: NVML utilisation": None,
    "together: SM activity": None,
    "together: occupancy": None,
}
