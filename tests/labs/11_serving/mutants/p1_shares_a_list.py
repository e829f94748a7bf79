# problem: shares
# loses: shares-right
# reason: prediction is not a dict

prediction = [80, 2, 80, 16, 20, 16, 25]
