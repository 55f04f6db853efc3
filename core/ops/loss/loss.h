#pragma once

#include <optional>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

/// How a loss combines the losses of its rows; the numbers are ATen's.
enum class Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

/// exp(self) / sum(exp(self)) along `dim`; `dtype` casts the input first.
Tensor softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype = std::nullopt);
/// log(softmax(self)), computed from the log-sum-exp of self to keep precision.
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype = std::nullopt);
/// Gradient of softmax's input from its output: output * (grad - sum(grad * output)).
Tensor softmax_backward_data(const Tensor& grad_output, const Tensor& output, int64_t dim,
                             DType input_dtype);
/// Gradient of log_softmax's input from its output: grad - exp(output) * sum(grad).
Tensor log_softmax_backward_data(const Tensor& grad_output, const Tensor& output, int64_t dim,
                                 DType input_dtype);

// Losses of class scores. `self` is [classes], [rows, classes] or [rows, classes, d1, ...];
// `target` has the same shape without the classes and holds class numbers (int64, int32 or uint8).
// Targets equal to `ignore_index` are skipped; any other outside [0, classes) throws IndexError.
// `weight` [classes] scales the losses of each class, and kMean divides by the sum of the weights
// of the targets (NaN when all are ignored).

/// -self[target]: self holds log-probabilities.
Tensor nll_loss(const Tensor& self, const Tensor& target, OptionalTensor weight = {},
                Reduction reduction = Reduction::kMean, int64_t ignore_index = -100);
/// The kernel behind nll_loss, for [classes] or [rows, classes]: the loss, and the sum of the
/// weights of the targets (0 for kNone of rows).
std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target,
                                            OptionalTensor weight, Reduction reduction,
                                            int64_t ignore_index);
/// Gradient of nll_loss_forward's first argument; only the shape and dtype of `self` are read.
Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                         OptionalTensor weight, Reduction reduction, int64_t ignore_index,
                         const Tensor& total_weight);
/// nll_loss(log_softmax(self)). `label_smoothing` in [0, 1] mixes in the uniform distribution. A
/// floating target of self's shape holds a probability for each class. The common case (class
/// numbers, no weight, no smoothing) is fused: the logits are read once, in their dtype, and the
/// gradient is written once, over them where nothing else reads them. The result has the logits'
/// dtype, under autocast f32.
Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, OptionalTensor weight = {},
                          Reduction reduction = Reduction::kMean, int64_t ignore_index = -100,
                          double label_smoothing = 0);
/// cross_entropy_loss without fused kernels: the reference they are tested against.
Tensor cross_entropy_loss_reference(const Tensor& self, const Tensor& target,
                                    OptionalTensor weight = {},
                                    Reduction reduction = Reduction::kMean,
                                    int64_t ignore_index = -100, double label_smoothing = 0);

/// Loss and logsumexp [rows] of logits [rows, classes] and targets [rows], both in f32, or f64 for
/// logits in f64. Rows are added in order, in f64.
std::tuple<Tensor, Tensor> fused_cross_entropy(const Tensor& self, const Tensor& target,
                                               Reduction reduction = Reduction::kMean,
                                               int64_t ignore_index = -100);
/// Gradient of the logits, in their dtype; grad_output has the dtype of the loss.
Tensor fused_cross_entropy_backward(const Tensor& self, const Tensor& grad_output,
                                    const Tensor& target, const Tensor& logsumexp,
                                    Reduction reduction, int64_t ignore_index);
/// Writes the same gradient over the logits.
const Tensor& fused_cross_entropy_backward_(const Tensor& self, const Tensor& grad_output,
                                            const Tensor& target, const Tensor& logsumexp,
                                            Reduction reduction, int64_t ignore_index);

// Losses between tensors that broadcast to one shape. Throw DTypeError unless one is floating.

/// |self - target|.
Tensor l1_loss(const Tensor& self, const Tensor& target, Reduction reduction = Reduction::kMean);
/// (self - target)^2.
Tensor mse_loss(const Tensor& self, const Tensor& target, Reduction reduction = Reduction::kMean);
/// d^2 / 2 for d = |self - target| <= delta, else delta (d - delta / 2); delta > 0. Huber 1964.
Tensor huber_loss(const Tensor& self, const Tensor& target, Reduction reduction = Reduction::kMean,
                  double delta = 1);
/// d^2 / (2 beta) for d = |self - target| < beta, else d - beta / 2; beta >= 0. Girshick 2015.
Tensor smooth_l1_loss(const Tensor& self, const Tensor& target,
                      Reduction reduction = Reduction::kMean, double beta = 1);
/// The terms target (log(target) - self) of a Kullback-Leibler divergence, for log-probabilities
/// self; 0 where target is 0. With `log_target` the target holds log-probabilities too.
Tensor kl_div(const Tensor& self, const Tensor& target, Reduction reduction = Reduction::kMean,
              bool log_target = false);
/// -pos_weight target log(s) - (1 - target) log(1 - s) for s = sigmoid(self), times `weight`, in a
/// form that keeps precision for large |self|.
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        OptionalTensor weight = {}, OptionalTensor pos_weight = {},
                                        Reduction reduction = Reduction::kMean);

}  // namespace lockstep
