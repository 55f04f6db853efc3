#include "optim/clip_grad.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/ops/factory/literal.h"
#include "core/ops/reduce/reduce.h"
#include "tests/core/expect_error.h"
#include "tests/optim/reference.h"

namespace lockstep::optim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Tensor> with_gradients(DType dtype = DType::kF32) {
  const std::vector<Tensor> parameters = start(dtype);
  set_gradients(parameters, 1);
  return parameters;
}

std::vector<double> gradient_elements(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : parameters) gradients.push_back(parameter.grad());
  return elements(gradients);
}

TEST(ClipGradNorm, NormAndGradientsArePyTorchs) {
  for (const nlohmann::json& want : reference()["clipping"]["norms"]) {
    const double type = want["norm_type"];
    const std::vector<Tensor> parameters = with_gradients();
    const Tensor norm =
        clip_grad_norm_(parameters, want["max_norm"], type == -1 ? kInfinity : type);
    EXPECT_EQ(norm.dtype(), DType::kF64);
    EXPECT_EQ(norm.dim(), 0);
    const std::string what = "norm type " + std::to_string(type);
    const double wanted = want["norm"];
    EXPECT_NEAR(norm.item<double>(), wanted, 2e-6 * wanted) << what;
    expect_near(gradient_elements(parameters), want["gradients"].get<std::vector<double>>(), 1e-6,
                what);
  }
}

TEST(ClipGradNorm, SmallGradientsKeepTheirBits) {
  const std::vector<Tensor> parameters = with_gradients();
  const std::vector<double> before = gradient_elements(parameters);
  const double norm = clip_grad_norm_(parameters, 1e3).item<double>();
  EXPECT_GT(norm, 1);
  EXPECT_EQ(gradient_elements(parameters), before);
}

TEST(ClipGradNorm, GradientsOfSeveralDtypesHaveOneNorm) {
  const Tensor half = tensor({3.0, 0.0}, {DType::kBF16}).set_requires_grad();
  const Tensor wide = tensor({0.0, 4.0}, {DType::kF64}).set_requires_grad();
  half.set_grad(half.detach().clone());
  wide.set_grad(wide.detach().clone());
  for (const double type : {2.0, 2.5}) {
    EXPECT_NEAR(clip_grad_norm_({half, wide}, 100, type).item<double>(),
                std::pow(std::pow(3, type) + std::pow(4, type), 1 / type), 1e-12);
  }
  clip_grad_norm_({half, wide}, 1);
  EXPECT_NEAR(wide.grad()[1].item<double>(), 0.8, 1e-6);
  EXPECT_NEAR(half.grad()[0].item<double>(), 0.6, 4e-3);
}

TEST(ClipGradNorm, ParametersWithoutGradientsAreLeftOut) {
  const std::vector<Tensor> parameters = start(DType::kF32);
  EXPECT_EQ(clip_grad_norm_(parameters, 1).item<double>(), 0);
  EXPECT_EQ(clip_grad_norm_(std::vector<Tensor>(), 1).item<double>(), 0);
  parameters[1].set_grad(tensor({3.0, 4.0}, {DType::kF32}));
  EXPECT_EQ(clip_grad_norm_(parameters, 10).item<double>(), 5);
  EXPECT_FALSE(parameters[0].grad().defined());
}

TEST(ClipGradNorm, GradientsWithoutElementsAreLeftOut) {
  const Tensor empty = zeros({0}).set_requires_grad();
  const Tensor pair = zeros({2}).set_requires_grad();
  empty.set_grad(zeros({0}));
  for (const double type : {1.0, 2.0, kInfinity}) {
    EXPECT_EQ(clip_grad_norm_({empty}, 1, type).item<double>(), 0) << type;
    pair.set_grad(tensor({3.0, -4.0}, {DType::kF32}));
    EXPECT_EQ(clip_grad_norm_({empty, pair}, 10, type).item<double>(), type == 1   ? 7
                                                                       : type == 2 ? 5
                                                                                   : 4)
        << type;
  }
}

TEST(ClipGradNorm, OfType0CountsTheElementsThatAreNotZero) {
  const std::vector<Tensor> parameters = start(DType::kF32);
  parameters[0].set_grad(tensor({{3.0, 0.0, 1.0}, {0.0, 0.0, 2.0}}, {DType::kF32}));
  parameters[1].set_grad(tensor({0.0, 4.0}, {DType::kF32}));
  EXPECT_EQ(clip_grad_norm_(parameters, 10, 0).item<double>(), 4);
}

TEST(ClipGradNorm, ANormThatIsNotFiniteNamesTheParameter) {
  const std::vector<Tensor> parameters = with_gradients();
  parameters[1].set_grad(tensor({1.0, kInfinity}, {DType::kF32}));
  const std::vector<double> before = gradient_elements(parameters);
  const std::vector<nn::NamedParameter> named = {{"fc.weight", parameters[0]},
                                                 {"fc.bias", parameters[1]}};
  expect_error<NonFiniteError>([&] { clip_grad_norm_(named, 1, 2, true); },
                               "[optim.clip_grad_norm_]", "inf", "parameter fc.bias");
  expect_error<NonFiniteError>([&] { clip_grad_norm_(parameters, 1, 2, true); }, "parameter 1");
  EXPECT_EQ(gradient_elements(parameters), before);
  // Without the check the gradients become 0 or NaN, as PyTorch's do.
  EXPECT_EQ(clip_grad_norm_(parameters, 1).item<double>(), kInfinity);
  EXPECT_EQ(parameters[0].grad()[0][0].item<double>(), 0);
}

TEST(ClipGradNorm, LimitsAreChecked) {
  const std::vector<Tensor> parameters = with_gradients();
  expect_error<ConfigError>([&] { clip_grad_norm_(parameters, -1); }, "max_norm");
  expect_error<ConfigError>([&] { clip_grad_norm_(parameters, 1, -2); }, "norm_type");
  expect_error<ConfigError>([&] { clip_grad_value_(parameters, -1); }, "[optim.clip_grad_value_]");
}

TEST(ClipGradValue, GradientsArePyTorchs) {
  const std::vector<Tensor> parameters = with_gradients();
  clip_grad_value_(parameters, 0.3);
  expect_near(gradient_elements(parameters),
              reference()["clipping"]["values"].get<std::vector<double>>(), 1e-6, "values");
}

}  // namespace
}  // namespace lockstep::optim
