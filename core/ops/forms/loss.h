#pragma once

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/tensor/tensor.h"

namespace lockstep {

Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, OptionalTensor weight,
                            int64_t reduction);
const Tensor& binary_cross_entropy_out(const Tensor& out, const Tensor& self, const Tensor& target,
                                       OptionalTensor weight = {}, int64_t reduction = 1);
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        OptionalTensor weight, OptionalTensor pos_weight,
                                        int64_t reduction);
const Tensor& binary_cross_entropy_with_logits_out(const Tensor& out, const Tensor& self,
                                                   const Tensor& target, OptionalTensor weight = {},
                                                   OptionalTensor pos_weight = {},
                                                   int64_t reduction = 1);
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             double margin, int64_t reduction);
Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, OptionalTensor weight,
                          int64_t reduction, int64_t ignore_index = -100,
                          double label_smoothing = 0.0);
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                IntList target_lengths, int64_t blank, int64_t reduction,
                bool zero_infinity = false);
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank = 0, int64_t reduction = 1,
                bool zero_infinity = false);
Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin,
                            int64_t reduction);
Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta = 1.0);
const Tensor& huber_loss_out(const Tensor& out, const Tensor& self, const Tensor& target,
                             int64_t reduction = 1, double delta = 1.0);
/// Gradient of huber_loss's first argument.
Tensor huber_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                           int64_t reduction, double delta);
Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target = false);
Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction);
Tensor linear_cross_entropy(const Tensor& input, const Tensor& weight, const Tensor& target,
                            int64_t reduction, int64_t ignore_index = -100);
const Tensor& log_softmax_out(const Tensor& out, const Tensor& self, int64_t dim,
                              std::optional<DType> dtype = std::nullopt);
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           double margin, int64_t reduction);
Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction);
const Tensor& mse_loss_out(const Tensor& out, const Tensor& self, const Tensor& target,
                           int64_t reduction = 1);
/// Gradient of mse_loss's first argument.
Tensor mse_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                         int64_t reduction);
Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p,
                         const Scalar& margin, OptionalTensor weight, int64_t reduction);
const Tensor& multi_margin_loss_out(const Tensor& out, const Tensor& self, const Tensor& target,
                                    const Scalar& p = 1, const Scalar& margin = 1,
                                    OptionalTensor weight = {}, int64_t reduction = 1);
Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction);
const Tensor& multilabel_margin_loss_out(const Tensor& out, const Tensor& self,
                                         const Tensor& target, int64_t reduction = 1);
/// multilabel_margin_loss, and 1 for each class that is a target, else 0.
std::tuple<Tensor, Tensor> multilabel_margin_loss_forward(const Tensor& self, const Tensor& target,
                                                          int64_t reduction);
std::tuple<Tensor, Tensor> multilabel_margin_loss_forward_out(const Tensor& output,
                                                            const Tensor& is_target,
                                                            const Tensor& self,
                                                            const Tensor& target,
                                                            int64_t reduction);
Tensor nll_loss(const Tensor& self, const Tensor& target, OptionalTensor weight, int64_t reduction,
                int64_t ignore_index = -100);
const Tensor& nll_loss_out(const Tensor& out, const Tensor& self, const Tensor& target,
                           OptionalTensor weight = {}, int64_t reduction = 1,
                           int64_t ignore_index = -100);
Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                         OptionalTensor weight, int64_t reduction, int64_t ignore_index,
                         const Tensor& total_weight);
std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target,
                                            OptionalTensor weight, int64_t reduction,
                                            int64_t ignore_index);
std::tuple<Tensor, Tensor> nll_loss_forward_out(const Tensor& output, const Tensor& total_weight,
                                                const Tensor& self, const Tensor& target,
                                                OptionalTensor weight, int64_t reduction,
                                                int64_t ignore_index);
/// -self[target] for log-probabilities [rows, classes, ...].
Tensor nll_loss_nd(const Tensor& self, const Tensor& target, OptionalTensor weight = {},
                   int64_t reduction = 1, int64_t ignore_index = -100);
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                        double eps, int64_t reduction);
Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction,
                      double beta = 1.0);
const Tensor& smooth_l1_loss_out(const Tensor& out, const Tensor& self, const Tensor& target,
                                 int64_t reduction = 1, double beta = 1.0);
/// Gradient of smooth_l1_loss's first argument.
Tensor smooth_l1_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                               int64_t reduction, double beta);
Tensor soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction);
const Tensor& soft_margin_loss_out(const Tensor& out, const Tensor& self, const Tensor& target,
                                   int64_t reduction = 1);
const Tensor& softmax_out(const Tensor& out, const Tensor& self, int64_t dim,
                          std::optional<DType> dtype = std::nullopt);
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin, double p, double eps, bool swap, int64_t reduction);

}  // namespace lockstep
