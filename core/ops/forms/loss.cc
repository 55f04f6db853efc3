#include "core/ops/forms/loss.h"

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, OptionalTensor weight,
                            int64_t reduction) {
  return form<Tensor(const Tensor&, const Tensor&, OptionalTensor, int64_t), "binary_cross_entropy">()(self, target, weight, reduction);
}
const Tensor& binary_cross_entropy_out(const Tensor& out, const Tensor& self, const Tensor& target,
                                       OptionalTensor weight, int64_t reduction) {
  return form<const Tensor&(const Tensor&, const Tensor&, OptionalTensor, int64_t, const Tensor&), "binary_cross_entropy.out">()(self, target, weight, reduction, out);
}
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        OptionalTensor weight, OptionalTensor pos_weight,
                                        int64_t reduction) {
  return form<Tensor(const Tensor&, const Tensor&, OptionalTensor, OptionalTensor, int64_t), "binary_cross_entropy_with_logits">()(self, target, weight, pos_weight, reduction);
}
const Tensor& binary_cross_entropy_with_logits_out(const Tensor& out, const Tensor& self,
                                                   const Tensor& target, OptionalTensor weight,
                                                   OptionalTensor pos_weight, int64_t reduction) {
  return form<const Tensor&(const Tensor&, const Tensor&, OptionalTensor, OptionalTensor, int64_t, const Tensor&), "binary_cross_entropy_with_logits.out">()(self, target, weight, pos_weight, reduction, out);
}
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             double margin, int64_t reduction) {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, double, int64_t), "cosine_embedding_loss">()(input1, input2, target, margin, reduction);
}
Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, OptionalTensor weight,
                          int64_t reduction, int64_t ignore_index, double label_smoothing) {
  return form<Tensor(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t, double), "cross_entropy_loss">()(self, target, weight, reduction, ignore_index, label_smoothing);
}
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                IntList target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  return form<Tensor(const Tensor&, const Tensor&, IntList, IntList, int64_t, int64_t, bool), "ctc_loss.IntList">()(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity);
}
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank, int64_t reduction,
                bool zero_infinity) {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t, bool), "ctc_loss.Tensor">()(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity);
}
Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin,
                            int64_t reduction) {
  return form<Tensor(const Tensor&, const Tensor&, double, int64_t), "hinge_embedding_loss">()(self, target, margin, reduction);
}
Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  return form<Tensor(const Tensor&, const Tensor&, int64_t, double), "huber_loss">()(self, target, reduction, delta);
}
const Tensor& huber_loss_out(const Tensor& out, const Tensor& self, const Tensor& target,
                             int64_t reduction, double delta) {
  return form<const Tensor&(const Tensor&, const Tensor&, int64_t, double, const Tensor&), "huber_loss.out">()(self, target, reduction, delta, out);
}
Tensor huber_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                           int64_t reduction, double delta) {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, int64_t, double), "huber_loss_backward">()(grad_output, self, target, reduction, delta);
}
Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  return form<Tensor(const Tensor&, const Tensor&, int64_t, bool), "kl_div">()(self, target, reduction, log_target);
}
Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return form<Tensor(const Tensor&, const Tensor&, int64_t), "l1_loss">()(self, target, reduction);
}
Tensor linear_cross_entropy(const Tensor& input, const Tensor& weight, const Tensor& target,
                            int64_t reduction, int64_t ignore_index) {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t), "linear_cross_entropy">()(input, weight, target, reduction, ignore_index);
}
const Tensor& log_softmax_out(const Tensor& out, const Tensor& self, int64_t dim,
                              std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, int64_t, std::optional<DType>, const Tensor&), "log_softmax.int_out">()(self, dim, dtype, out);
}
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           double margin, int64_t reduction) {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, double, int64_t), "margin_ranking_loss">()(input1, input2, target, margin, reduction);
}
Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return form<Tensor(const Tensor&, const Tensor&, int64_t), "mse_loss">()(self, target, reduction);
}
const Tensor& mse_loss_out(const Tensor& out, const Tensor& self, const Tensor& target,
                           int64_t reduction) {
  return form<const Tensor&(const Tensor&, const Tensor&, int64_t, const Tensor&), "mse_loss.out">()(self, target, reduction, out);
}
Tensor mse_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                         int64_t reduction) {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, int64_t), "mse_loss_backward">()(grad_output, self, target, reduction);
}
Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p,
                         const Scalar& margin, OptionalTensor weight, int64_t reduction) {
  return form<Tensor(const Tensor&, const Tensor&, Scalar, Scalar, OptionalTensor, int64_t), "multi_margin_loss">()(self, target, p, margin, weight, reduction);
}
const Tensor& multi_margin_loss_out(const Tensor& out, const Tensor& self, const Tensor& target,
                                    const Scalar& p, const Scalar& margin, OptionalTensor weight,
                                    int64_t reduction) {
  return form<const Tensor&(const Tensor&, const Tensor&, Scalar, Scalar, OptionalTensor, int64_t, const Tensor&), "multi_margin_loss.out">()(self, target, p, margin, weight, reduction, out);
}
Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return form<Tensor(const Tensor&, const Tensor&, int64_t), "multilabel_margin_loss">()(self, target, reduction);
}
const Tensor& multilabel_margin_loss_out(const Tensor& out, const Tensor& self,
                                         const Tensor& target, int64_t reduction) {
  return form<const Tensor&(const Tensor&, const Tensor&, int64_t, const Tensor&), "multilabel_margin_loss.out">()(self, target, reduction, out);
}
std::tuple<Tensor, Tensor> multilabel_margin_loss_forward(const Tensor& self, const Tensor& target,
                                                          int64_t reduction) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, int64_t), "multilabel_margin_loss_forward">()(self, target, reduction);
}
std::tuple<Tensor, Tensor> multilabel_margin_loss_forward_out(const Tensor& output,
                                                            const Tensor& is_target,
                                                            const Tensor& self,
                                                            const Tensor& target,
                                                            int64_t reduction) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, int64_t, const Tensor&, const Tensor&), "multilabel_margin_loss_forward.output">()(self, target, reduction, output, is_target);
}
Tensor nll_loss(const Tensor& self, const Tensor& target, OptionalTensor weight, int64_t reduction,
                int64_t ignore_index) {
  return form<Tensor(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t), "nll_loss">()(self, target, weight, reduction, ignore_index);
}
const Tensor& nll_loss_out(const Tensor& out, const Tensor& self, const Tensor& target,
                           OptionalTensor weight, int64_t reduction, int64_t ignore_index) {
  return form<const Tensor&(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t, const Tensor&), "nll_loss.out">()(self, target, weight, reduction, ignore_index, out);
}
Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                         OptionalTensor weight, int64_t reduction, int64_t ignore_index,
                         const Tensor& total_weight) {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t, const Tensor&), "nll_loss_backward">()(grad_output, self, target, weight, reduction, ignore_index, total_weight);
}
std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target,
                                            OptionalTensor weight, int64_t reduction,
                                            int64_t ignore_index) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t), "nll_loss_forward">()(self, target, weight, reduction, ignore_index);
}
std::tuple<Tensor, Tensor> nll_loss_forward_out(const Tensor& output, const Tensor& total_weight,
                                                const Tensor& self, const Tensor& target,
                                                OptionalTensor weight, int64_t reduction,
                                                int64_t ignore_index) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t, const Tensor&, const Tensor&), "nll_loss_forward.output">()(self, target, weight, reduction, ignore_index, output, total_weight);
}
Tensor nll_loss_nd(const Tensor& self, const Tensor& target, OptionalTensor weight,
                   int64_t reduction, int64_t ignore_index) {
  return form<Tensor(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t), "nll_loss_nd">()(self, target, weight, reduction, ignore_index);
}
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                        double eps, int64_t reduction) {
  return form<Tensor(const Tensor&, const Tensor&, bool, bool, double, int64_t), "poisson_nll_loss">()(input, target, log_input, full, eps, reduction);
}
Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  return form<Tensor(const Tensor&, const Tensor&, int64_t, double), "smooth_l1_loss">()(self, target, reduction, beta);
}
const Tensor& smooth_l1_loss_out(const Tensor& out, const Tensor& self, const Tensor& target,
                                 int64_t reduction, double beta) {
  return form<const Tensor&(const Tensor&, const Tensor&, int64_t, double, const Tensor&), "smooth_l1_loss.out">()(self, target, reduction, beta, out);
}
Tensor smooth_l1_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                               int64_t reduction, double beta) {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, int64_t, double), "smooth_l1_loss_backward">()(grad_output, self, target, reduction, beta);
}
Tensor soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return form<Tensor(const Tensor&, const Tensor&, int64_t), "soft_margin_loss">()(self, target, reduction);
}
const Tensor& soft_margin_loss_out(const Tensor& out, const Tensor& self, const Tensor& target,
                                   int64_t reduction) {
  return form<const Tensor&(const Tensor&, const Tensor&, int64_t, const Tensor&), "soft_margin_loss.out">()(self, target, reduction, out);
}
const Tensor& softmax_out(const Tensor& out, const Tensor& self, int64_t dim,
                          std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, int64_t, std::optional<DType>, const Tensor&), "softmax.int_out">()(self, dim, dtype, out);
}
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin, double p, double eps, bool swap, int64_t reduction) {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, double, double, double, bool, int64_t), "triplet_margin_loss">()(anchor, positive, negative, margin, p, eps, swap, reduction);
}

}  // namespace lockstep
