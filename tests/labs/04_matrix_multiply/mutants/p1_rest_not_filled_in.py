# problem: strides
# loses: strides-turned
# reason: has no number yet for 'Aᵀ · B, warp of 32 × 1'

prediction = {
    "A · B, warp of 32 × 1": 5,
    "A · B, warp of 16 × 2": 4,
    "A · B, warp of 4 × 8": 9,
    "Aᵀ · B, warp of 32 × 1": None,
    "Aᵀ · B, warp of 8 × 4": None,
    "A · Bᵀ, warp of 8 × 4": None,
}
