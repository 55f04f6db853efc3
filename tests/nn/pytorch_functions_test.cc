// Activations and losses compute what PyTorch's compute, forward and backward.

#include "nn/activations.h"
#include "nn/losses.h"
#include "nn/margin_losses.h"
#include "tests/nn/pytorch_case.h"

namespace lockstep::nn {
namespace {

TEST(LikePytorch, Activations) {
  expect_like_pytorch("relu", ReLU());
  expect_like_pytorch("relu6", ReLU6());
  expect_like_pytorch("leaky_relu", LeakyReLU(0.2));
  expect_like_pytorch("prelu", PReLU(4));
  expect_like_pytorch("elu", ELU(0.7));
  expect_like_pytorch("celu", CELU(1.3));
  expect_like_pytorch("selu", SELU());
  expect_like_pytorch("gelu", GELU());
  expect_like_pytorch("gelu_tanh", GELU("tanh"));
  expect_like_pytorch("silu", SiLU());
  expect_like_pytorch("mish", Mish());
  expect_like_pytorch("tanh", Tanh());
  expect_like_pytorch("tanhshrink", Tanhshrink());
  expect_like_pytorch("sigmoid", Sigmoid());
  expect_like_pytorch("log_sigmoid", LogSigmoid());
  expect_like_pytorch("softplus", Softplus(2, 3));
  expect_like_pytorch("softsign", Softsign());
  expect_like_pytorch("softshrink", Softshrink(0.3));
  expect_like_pytorch("hardshrink", Hardshrink(0.3));
  expect_like_pytorch("hardtanh", Hardtanh(-0.5, 0.7));
  expect_like_pytorch("hardsigmoid", Hardsigmoid());
  expect_like_pytorch("hardswish", Hardswish());
  expect_like_pytorch("threshold", Threshold(0.1, -2));
}

TEST(LikePytorch, ActivationsAlongADimension) {
  expect_like_pytorch("glu", GLU(1));
  expect_like_pytorch("softmax", Softmax(1));
  expect_like_pytorch("softmin", Softmin(-1));
  expect_like_pytorch("log_softmax", LogSoftmax(1));
}

/// The loss weights of the classes, which PyTorch's modules keep as buffers.
Tensor any_weight() { return ones({4}); }

TEST(LikePytorch, LossesOfClasses) {
  expect_like_pytorch(
      "cross_entropy",
      CrossEntropyLoss({.weight = any_weight(), .ignore_index = 0, .label_smoothing = 0.1}));
  expect_like_pytorch("cross_entropy_sum", CrossEntropyLoss({.reduction = Reduction::kSum}));
  expect_like_pytorch("cross_entropy_soft", CrossEntropyLoss());
  expect_like_pytorch("nll", NLLLoss({.weight = any_weight(), .reduction = Reduction::kNone}));
}

TEST(LikePytorch, LossesOfNumbers) {
  expect_like_pytorch("mse", MSELoss());
  expect_like_pytorch("l1", L1Loss(Reduction::kSum));
  expect_like_pytorch("smooth_l1", SmoothL1Loss(Reduction::kMean, 0.5));
  expect_like_pytorch("huber", HuberLoss(Reduction::kMean, 0.7));
  expect_like_pytorch("poisson_nll", PoissonNLLLoss({.full = true}));
  expect_like_pytorch("poisson_nll_rate",
                      PoissonNLLLoss({.log_input = false, .reduction = Reduction::kSum}));
  expect_like_pytorch("gaussian_nll", GaussianNLLLoss({.full = true, .eps = 0.2}));
}

TEST(LikePytorch, LossesOfProbabilities) {
  expect_like_pytorch("bce_with_logits",
                      BCEWithLogitsLoss({.weight = any_weight(), .pos_weight = any_weight()}));
  expect_like_pytorch("bce", BCELoss({.weight = any_weight()}));
  expect_like_pytorch("ctc", CTCLoss(), [](CTCLoss& m, const Tensors& in) -> Tensors {
    return {m.forward(in[0], in[1], {6, 5}, {3, 2})};
  });
  expect_like_pytorch("kl_div", KLDivLoss({.batch_mean = true}));
  expect_like_pytorch("kl_div_log", KLDivLoss({.log_target = true}));
}

TEST(LikePytorch, LossesWithMargins) {
  expect_like_pytorch("margin_ranking", MarginRankingLoss(0.3));
  expect_like_pytorch("hinge_embedding", HingeEmbeddingLoss(0.5));
  expect_like_pytorch("cosine_embedding", CosineEmbeddingLoss(0.1));
  expect_like_pytorch("soft_margin", SoftMarginLoss());
  expect_like_pytorch("multi_margin",
                      MultiMarginLoss({.p = 2, .margin = 0.5, .weight = any_weight()}));
  expect_like_pytorch("multilabel_margin", MultiLabelMarginLoss(Reduction::kSum));
  expect_like_pytorch("triplet_margin", TripletMarginLoss({.swap = true}));
  expect_like_pytorch("triplet_margin_p", TripletMarginLoss({.margin = 2, .p = 3}));
}

}  // namespace
}  // namespace lockstep::nn
