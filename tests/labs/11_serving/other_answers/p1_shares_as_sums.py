prediction = {
    "spinning: NVML utilisation": 80.0,
    "spinning: SM activity": 2.0,
    "in turn: NVML utilisation": 80,
    "in turn: SM activity": 16.0,
    "together: NVML utilisation": 20,
    "together: SM activity": np.float32(16),
    "together: occupancy": 25,
}
