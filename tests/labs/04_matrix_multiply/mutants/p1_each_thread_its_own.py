# problem: strides
# loses: strides-plain, strides-turned
# reason: wrong for 3 of 3

prediction = {
    "A · B, warp of 32 × 1": 64,
    "A · B, warp of 16 × 2": 64,
    "A · B, warp of 4 × 8": 64,
    "Aᵀ · B, warp of 32 × 1": 64,
    "Aᵀ · B, warp of 8 × 4": 64,
    "A · Bᵀ, warp of 8 × 4": 64,
}
