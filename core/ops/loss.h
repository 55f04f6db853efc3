#pragma once

#include <optional>
#include <tuple>

#include "core/tensor.h"

namespace lockstep {

/// How a loss joins the losses of its rows; the numbers are ATen's.
enum class Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

/// exp(self) / sum(exp(self)) along `dim`; `dtype` casts the input first.
Tensor softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype = std::nullopt);
/// log(softmax(self)), computed without loss of precision.
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype = std::nullopt);
/// Gradient of softmax's input from its output: output * (grad - sum(grad * output)).
Tensor softmax_backward_data(const Tensor& grad_output, const Tensor& output, int64_t dim,
                             DType input_dtype);
/// Gradient of log_softmax's input from its output: grad - exp(output) * sum(grad).
Tensor log_softmax_backward_data(const Tensor& grad_output, const Tensor& output, int64_t dim,
                                 DType input_dtype);

// Losses of class scores. `self` is [classes], [rows, classes] or [rows, classes, d1, ...];
// `target` has the same shape without the classes and holds class numbers (int64, int32 or uint8).
// Targets equal to `ignore_index` count nothing; any other outside [0, classes) is an IndexError.
// `weight` [classes] scales the losses of each class, and kMean divides by the sum of the weights
// of the targets (NaN when all are ignored).

/// -self[target]: self holds log-probabilities.
Tensor nll_loss(const Tensor& self, const Tensor& target, OptionalTensor weight = {},
                Reduction reduction = Reduction::kMean, int64_t ignore_index = -100);
/// The kernel behind nll_loss, for [classes] or [rows, classes]: the loss, and the sum of the
/// weights of the targets (0 for kNone).
std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target,
                                            OptionalTensor weight, Reduction reduction,
                                            int64_t ignore_index);
/// Gradient of nll_loss_forward's first argument, of which shape and dtype are read.
Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                         OptionalTensor weight, Reduction reduction, int64_t ignore_index,
                         const Tensor& total_weight);
/// nll_loss(log_softmax(self)). `label_smoothing` in [0, 1] mixes in the uniform distribution. A
/// floating target of self's shape holds a probability for each class. The common case (class
/// numbers, no weight, no smoothing) is fused: the logits are read once and the gradient written
/// once.
Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, OptionalTensor weight = {},
                          Reduction reduction = Reduction::kMean, int64_t ignore_index = -100,
                          double label_smoothing = 0);
/// The same without fused kernels: their oracle.
Tensor cross_entropy_loss_reference(const Tensor& self, const Tensor& target,
                                    OptionalTensor weight = {},
                                    Reduction reduction = Reduction::kMean,
                                    int64_t ignore_index = -100, double label_smoothing = 0);

/// Loss and logsumexp [rows] of logits [rows, classes] and targets [rows]. Rows are added in
/// order, in f64.
std::tuple<Tensor, Tensor> fused_cross_entropy(const Tensor& self, const Tensor& target,
                                               Reduction reduction = Reduction::kMean,
                                               int64_t ignore_index = -100);
/// Gradient of the logits.
Tensor fused_cross_entropy_backward(const Tensor& grad_output, const Tensor& self,
                                    const Tensor& target, const Tensor& logsumexp,
                                    Reduction reduction, int64_t ignore_index);

}  // namespace lockstep
