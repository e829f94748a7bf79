# problem: strides
# loses: strides-plain, strides-turned
# reason: wrong for 3 of 3

prediction = {
    "A · B, warp of 32 × 1": 4,
    "A · B, warp of 16 × 2": 2,
    "A · B, warp of 4 × 8": 1,
    "Aᵀ · B, warp of 32 × 1": 4,
    "Aᵀ · B, warp of 8 × 4": 1,
    "A · Bᵀ, warp of 8 × 4": 8,
}
