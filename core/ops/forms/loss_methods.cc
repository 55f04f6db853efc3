// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor Tensor::binary_cross_entropy(const Tensor& target, OptionalTensor weight,
                                    int64_t reduction) const {
  return form<Tensor(const Tensor&, const Tensor&, OptionalTensor, int64_t), "binary_cross_entropy">()(*this, target, weight, reduction);
}
Tensor Tensor::binary_cross_entropy_with_logits(const Tensor& target, OptionalTensor weight,
                                                OptionalTensor pos_weight,
                                                int64_t reduction) const {
  return form<Tensor(const Tensor&, const Tensor&, OptionalTensor, OptionalTensor, int64_t), "binary_cross_entropy_with_logits">()(*this, target, weight, pos_weight, reduction);
}
Tensor Tensor::cross_entropy_loss(const Tensor& target, OptionalTensor weight, int64_t reduction,
                                  int64_t ignore_index, double label_smoothing) const {
  return form<Tensor(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t, double), "cross_entropy_loss">()(*this, target, weight, reduction, ignore_index, label_smoothing);
}
Tensor Tensor::hinge_embedding_loss(const Tensor& target, double margin, int64_t reduction) const {
  return form<Tensor(const Tensor&, const Tensor&, double, int64_t), "hinge_embedding_loss">()(*this, target, margin, reduction);
}
Tensor Tensor::huber_loss(const Tensor& target, int64_t reduction, double delta) const {
  return form<Tensor(const Tensor&, const Tensor&, int64_t, double), "huber_loss">()(*this, target, reduction, delta);
}
Tensor Tensor::kl_div(const Tensor& target, int64_t reduction, bool log_target) const {
  return form<Tensor(const Tensor&, const Tensor&, int64_t, bool), "kl_div">()(*this, target, reduction, log_target);
}
Tensor Tensor::l1_loss(const Tensor& target, int64_t reduction) const {
  return form<Tensor(const Tensor&, const Tensor&, int64_t), "l1_loss">()(*this, target, reduction);
}
Tensor Tensor::log_softmax(int64_t dim, std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, int64_t, std::optional<DType>), "log_softmax.int">()(*this, dim, dtype);
}
Tensor Tensor::mse_loss(const Tensor& target, int64_t reduction) const {
  return form<Tensor(const Tensor&, const Tensor&, int64_t), "mse_loss">()(*this, target, reduction);
}
Tensor Tensor::multi_margin_loss(const Tensor& target, const Scalar& p, const Scalar& margin,
                                 OptionalTensor weight, int64_t reduction) const {
  return form<Tensor(const Tensor&, const Tensor&, Scalar, Scalar, OptionalTensor, int64_t), "multi_margin_loss">()(*this, target, p, margin, weight, reduction);
}
Tensor Tensor::multilabel_margin_loss(const Tensor& target, int64_t reduction) const {
  return form<Tensor(const Tensor&, const Tensor&, int64_t), "multilabel_margin_loss">()(*this, target, reduction);
}
std::tuple<Tensor, Tensor> Tensor::multilabel_margin_loss_forward(const Tensor& target,
                                                            int64_t reduction) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, int64_t), "multilabel_margin_loss_forward">()(*this, target, reduction);
}
Tensor Tensor::nll_loss(const Tensor& target, OptionalTensor weight, int64_t reduction,
                        int64_t ignore_index) const {
  return form<Tensor(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t), "nll_loss">()(*this, target, weight, reduction, ignore_index);
}
std::tuple<Tensor, Tensor> Tensor::nll_loss_forward(const Tensor& target, OptionalTensor weight,
                                                    int64_t reduction, int64_t ignore_index) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t), "nll_loss_forward">()(*this, target, weight, reduction, ignore_index);
}
Tensor Tensor::nll_loss_nd(const Tensor& target, OptionalTensor weight, int64_t reduction,
                           int64_t ignore_index) const {
  return form<Tensor(const Tensor&, const Tensor&, OptionalTensor, int64_t, int64_t), "nll_loss_nd">()(*this, target, weight, reduction, ignore_index);
}
Tensor Tensor::smooth_l1_loss(const Tensor& target, int64_t reduction, double beta) const {
  return form<Tensor(const Tensor&, const Tensor&, int64_t, double), "smooth_l1_loss">()(*this, target, reduction, beta);
}
Tensor Tensor::soft_margin_loss(const Tensor& target, int64_t reduction) const {
  return form<Tensor(const Tensor&, const Tensor&, int64_t), "soft_margin_loss">()(*this, target, reduction);
}
Tensor Tensor::softmax(int64_t dim, std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, int64_t, std::optional<DType>), "softmax.int">()(*this, dim, dtype);
}

}  // namespace lockstep
