#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <limits>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/ops/factory/literal.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "optim/lbfgs.h"
#include "tests/core/expect_error.h"
#include "tests/optim/every_optimizer.h"
#include "tests/optim/reference.h"

namespace lockstep::optim {
namespace {

Tensor leaf(const Tensor& values) { return values.set_requires_grad(); }

/// Sets the gradient and takes a step of plain SGD with rate 1.
TEST(Optimizer, AStepReadsTheGradientsOfTheParameters) {
  const Tensor w = leaf(tensor({1.0, 2.0}));
  SGD optimizer({w}, {.learning_rate = 0.5});
  sum(w * w).backward();
  optimizer.step();
  EXPECT_EQ(elements({w}), (std::vector<double>{0, 0}));
  EXPECT_TRUE(w.requires_grad());
  EXPECT_TRUE(w.is_leaf());
}

TEST(Optimizer, AParameterWithoutAGradientIsLeftOut) {
  for (const MakeOptimizer& make : every_optimizer()) {
    const std::vector<Tensor> parameters = start(DType::kF32);
    const std::vector<double> before = elements({parameters[1]});
    const std::unique_ptr<Optimizer> optimizer = make(parameters);
    set_gradients(parameters, 3);  // the second has none
    optimizer->step();
    EXPECT_EQ(elements({parameters[1]}), before) << optimizer->kind();
    EXPECT_NE(elements({parameters[0]})[0], 0.5) << optimizer->kind();
    const StateDict state = optimizer->state_dict();
    EXPECT_EQ(state.numbers.at("step.0"), 1);
    EXPECT_FALSE(state.numbers.contains("step.1"));
  }
}

TEST(Optimizer, AStepWithoutAnyGradientChangesNothing) {
  for (const MakeOptimizer& make : every_optimizer()) {
    const std::vector<Tensor> parameters = start(DType::kF32);
    const std::vector<double> before = elements(parameters);
    make(parameters)->step();
    EXPECT_EQ(elements(parameters), before);
  }
}

TEST(Optimizer, ZeroGradRemovesGradientsOrFillsThem) {
  const std::vector<Tensor> parameters = start(DType::kF32);
  const SGD optimizer(parameters);
  set_gradients(parameters, 3);
  const Tensor grad = parameters[0].grad();
  optimizer.zero_grad(/*set_to_none=*/false);
  EXPECT_TRUE(parameters[0].grad().is_same(grad));
  EXPECT_EQ(elements({grad}), std::vector<double>(6, 0.0));
  EXPECT_FALSE(parameters[1].grad().defined());
  optimizer.zero_grad();
  EXPECT_FALSE(parameters[0].grad().defined());
}

TEST(Optimizer, ZerosReplaceAGradientThatHasAHistory) {
  const Tensor w = leaf(tensor({3.0}));
  const SGD optimizer({w});
  backward({sum(w * w * w)}, {}, {.create_graph = true});
  ASSERT_TRUE(w.grad().requires_grad());
  optimizer.zero_grad(/*set_to_none=*/false);
  EXPECT_FALSE(w.grad().requires_grad());
  EXPECT_EQ(elements({w.grad()}), std::vector<double>{0});
}

TEST(Optimizer, AClosureRunsWithGradientsAndItsLossIsReturned) {
  const Tensor w = leaf(tensor({2.0}));
  SGD optimizer({w}, {.learning_rate = 0.25});
  const NoGradGuard no_grad;
  const Tensor loss = optimizer.step([&] {
    optimizer.zero_grad();
    const Tensor value = sum(w * w);
    value.backward();
    return value;
  });
  EXPECT_EQ(loss.item<double>(), 4);
  EXPECT_EQ(elements({w}), std::vector<double>{1});
}

TEST(Optimizer, GroupsHaveTheirOwnOptions) {
  const Tensor a = leaf(tensor({1.0}));
  const Tensor b = leaf(tensor({1.0}));
  SGD optimizer({a}, {.learning_rate = 0.5});
  optimizer.add_group({b}, {.learning_rate = 0.25, .weight_decay = 1});
  ASSERT_EQ(optimizer.group_count(), 2u);
  EXPECT_TRUE(optimizer.parameters(1)[0].is_same(b));
  for (const Tensor& each : {a, b}) each.set_grad(tensor({1.0}));
  optimizer.step();
  EXPECT_EQ(elements({a, b}), (std::vector<double>{0.5, 0.5}));

  optimizer.set_learning_rate(0, 0);
  EXPECT_EQ(optimizer.learning_rate(0), 0);
  EXPECT_EQ(optimizer.learning_rate(1), 0.25);
  EXPECT_EQ(optimizer.options(1).learning_rate, 0.25);
  optimizer.step();
  EXPECT_EQ(elements({a, b}), (std::vector<double>{0.5, 0.125}));
  optimizer.set_learning_rate(1);
  EXPECT_EQ(optimizer.options(0).learning_rate, 1);
  EXPECT_EQ(optimizer.options(1).learning_rate, 1);

  SGDOptions changed = optimizer.options(1);
  changed.weight_decay = 0;
  optimizer.set_options(changed, 1);
  optimizer.step();
  EXPECT_EQ(elements({a, b}), (std::vector<double>{-0.5, -0.875}));
}

TEST(Optimizer, AGroupThatDoesNotExistIsAnError) {
  SGD optimizer(start(DType::kF32));
  expect_error<IndexError>([&] { (void)optimizer.learning_rate(1); }, "[optim.SGD]", "below 1",
                           "got 1");
  expect_error<IndexError>([&] { optimizer.set_learning_rate(1, 1); }, "no such group");
  expect_error<IndexError>([&] { (void)optimizer.options(1); }, "no such group");
  expect_error<IndexError>([&] { optimizer.set_options({}, 1); }, "no such group");
  expect_error<IndexError>([&] { (void)optimizer.parameters(1); }, "no such group");
}

TEST(Optimizer, MomentumIsBeta1WhereThereIsOne) {
  const std::vector<Tensor> parameters = start(DType::kF32);
  Adam adam(parameters, {.beta1 = 0.7});
  EXPECT_EQ(adam.momentum(0), 0.7);
  adam.set_momentum(0.6, 0);
  EXPECT_EQ(adam.options().beta1, 0.6);
  EXPECT_EQ(SGD(parameters, {.momentum = 0.5}).momentum(0), 0.5);
  EXPECT_EQ(Adagrad(parameters).momentum(0), std::nullopt);
}

TEST(Optimizer, ParametersThatCannotBeTrainedAreRefused) {
  const Tensor w = leaf(tensor({1.0, 2.0}));
  const Tensor frozen = tensor({1.0});
  expect_error<AutogradError>([&] { SGD({w, w * 2}); }, "[optim.SGD] parameter 1 is no leaf");
  expect_error<AutogradError>([&] { Adam({frozen}); },
                              "[optim.Adam] parameter 0 does not require grad");
  expect_error<AutogradError>(
      [&] {
        SGD(std::vector<nn::NamedParameter>{{"fc.weight", w}, {"fc.bias", frozen}});
      },
      "parameter fc.bias does not require grad");
  expect_error<Error>([&] { SGD({w, w}); }, "parameter 1 is given twice");
  expect_error<Error>([&] { SGD({w, Tensor()}); }, "parameter 1 is undefined");
  expect_error<Error>([&] { SGD(std::vector<Tensor>()); }, "no parameters");
}

TEST(Optimizer, AGroupThatIsRefusedLeavesTheOthersAsTheyAre) {
  const Tensor a = leaf(tensor({1.0}));
  const Tensor b = leaf(tensor({1.0}));
  SGD optimizer(std::vector<nn::NamedParameter>{{"w", a}});
  expect_error<Error>([&] { optimizer.add_group({b, a}); }, "parameter 2 is given twice");
  expect_error<ConfigError>([&] { optimizer.add_group({b}, {.momentum = -1}); }, "momentum");
  expect_error<Error>(
      [&] {
        optimizer.add_group(std::vector<nn::NamedParameter>{{"w", b}});
      },
      "two parameters are called \"w\"");
  EXPECT_EQ(optimizer.group_count(), 1u);
  optimizer.add_group({b});
  EXPECT_EQ(optimizer.group_count(), 2u);
}

/// A value of an option, and whether it is allowed.
template <class T, class Options>
void expect_range(double Options::*option, std::initializer_list<double> good,
                  std::initializer_list<double> bad, const std::string& name) {
  const std::vector<Tensor> parameters = start(DType::kF32);
  T optimizer(parameters);
  for (const double value : good) {
    Options options;
    options.*option = value;
    EXPECT_NO_THROW(T(parameters, options)) << name << " = " << value;
    EXPECT_NO_THROW(optimizer.set_options(options)) << name << " = " << value;
  }
  for (const double value : bad) {
    Options options;
    options.*option = value;
    const std::string place = std::string("[optim.") + optimizer.kind() + "] " + name;
    expect_error<ConfigError>([&] { T(parameters, options); }, place, "out of range");
    expect_error<ConfigError>([&] { optimizer.set_options(options); }, place);
  }
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(OptimizerOptions, OfSGD) {
  expect_range<SGD>(&SGDOptions::learning_rate, {0, 10}, {-1e-9, kNaN}, "learning_rate");
  expect_range<SGD>(&SGDOptions::momentum, {0, 1.5}, {-0.1}, "momentum");
  expect_range<SGD>(&SGDOptions::weight_decay, {0, 1}, {-0.1}, "weight_decay");
  expect_range<SGD>(&SGDOptions::dampening, {-1, 0, 2}, {kNaN}, "dampening");
  const std::vector<Tensor> parameters = start(DType::kF32);
  expect_error<ConfigError>([&] { SGD(parameters, {.nesterov = true}); }, "nesterov", "momentum 0");
  expect_error<ConfigError>(
      [&] { SGD(parameters, {.momentum = 0.9, .dampening = 0.5, .nesterov = true}); },
      "dampening 0.5");
}

TEST(OptimizerOptions, OfTheAdams) {
  expect_range<Adam>(&AdamOptions::learning_rate, {0}, {-1, kNaN}, "learning_rate");
  expect_range<Adam>(&AdamOptions::beta1, {0, 0.999}, {-0.1, 1, kNaN}, "beta1");
  expect_range<AdamW>(&AdamWOptions::beta2, {0, 0.999}, {-0.1, 1}, "beta2");
  expect_range<AdamW>(&AdamWOptions::epsilon, {0}, {-1e-9}, "epsilon");
  expect_range<AdamW>(&AdamWOptions::weight_decay, {0}, {-1e-9}, "weight_decay");
  expect_range<NAdam>(&NAdamOptions::beta1, {0, 0.999}, {-0.1, 1}, "beta1");
  expect_range<NAdam>(&NAdamOptions::momentum_decay, {0, 1}, {-0.1}, "momentum_decay");
  expect_range<RAdam>(&RAdamOptions::beta2, {0, 0.999}, {-0.1, 1}, "beta2");
  expect_range<RAdam>(&RAdamOptions::epsilon, {0}, {-1}, "epsilon");
}

TEST(OptimizerOptions, OfTheOthers) {
  expect_range<RMSprop>(&RMSpropOptions::alpha, {0, 1.5}, {-0.1}, "alpha");
  expect_range<RMSprop>(&RMSpropOptions::momentum, {0, 2}, {-0.1}, "momentum");
  expect_range<Adagrad>(&AdagradOptions::lr_decay, {0, 2}, {-0.1}, "lr_decay");
  expect_range<Adagrad>(&AdagradOptions::initial_accumulator_value, {0, 2}, {-0.1},
                        "initial_accumulator_value");
  expect_range<Adadelta>(&AdadeltaOptions::rho, {0, 1}, {-0.1, 1.1}, "rho");
  expect_range<Adadelta>(&AdadeltaOptions::epsilon, {0}, {-0.1}, "epsilon");
}

TEST(Optimizer, ALearningRateThatIsNoNumberIsRefused) {
  SGD optimizer(start(DType::kF32), {.learning_rate = 0.5});
  expect_error<ConfigError>([&] { optimizer.set_learning_rate(kNaN); }, "[optim.SGD]", "NaN");
  EXPECT_EQ(optimizer.learning_rate(), 0.5);
}

/// Takes steps with parameters that are contiguous, and with the same values laid out otherwise.
TEST(Optimizer, TheLayoutOfAParameterDoesNotMatter) {
  for (const MakeOptimizer& make : every_optimizer()) {
    const std::vector<Tensor> rows = start(DType::kF64);
    std::vector<Tensor> columns = start(DType::kF64);
    columns[0] = leaf(columns[0].detach().t().contiguous().t());
    ASSERT_FALSE(columns[0].is_contiguous());
    const std::unique_ptr<Optimizer> by_rows = make(rows);
    const std::unique_ptr<Optimizer> by_columns = make(columns);
    for (int step = 1; step <= 5; ++step) {
      set_gradients(rows, step);
      set_gradients(columns, step);
      by_rows->step();
      by_columns->step();
    }
    expect_near(elements(columns), elements(rows), 1e-14, by_rows->kind());
  }
}

TEST(Optimizer, AGroupMayHaveParametersOfSeveralDtypes) {
  for (const MakeOptimizer& make : every_optimizer()) {
    const std::vector<Tensor> mixed = {start(DType::kF32)[0], start(DType::kF64)[1]};
    const std::vector<Tensor> wide = start(DType::kF64);
    const std::unique_ptr<Optimizer> of_mixed = make(mixed);
    const std::unique_ptr<Optimizer> of_wide = make(wide);
    for (int step = 1; step <= 5; ++step) {
      set_gradients(mixed, step);
      set_gradients(wide, step);
      of_mixed->step();
      of_wide->step();
    }
    EXPECT_EQ(elements({mixed[1]}), elements({wide[1]})) << of_wide->kind();
    expect_near(elements({mixed[0]}), elements({wide[0]}), 1e-5, of_wide->kind());
  }
}

TEST(Optimizer, HalfPrecisionParametersAreTrained) {
  for (const MakeOptimizer& make : every_optimizer()) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      const std::vector<Tensor> narrow = start(dtype);
      const std::vector<Tensor> wide = start(DType::kF32);
      const std::unique_ptr<Optimizer> of_narrow = make(narrow);
      const std::unique_ptr<Optimizer> of_wide = make(wide);
      for (int step = 1; step <= 3; ++step) {
        set_gradients(narrow, step);
        set_gradients(wide, step);
        of_narrow->step();
        of_wide->step();
      }
      EXPECT_EQ(narrow[0].dtype(), dtype);
      expect_near(elements(narrow), elements(wide), 0.03, of_narrow->kind());
    }
  }
}

}  // namespace
}  // namespace lockstep::optim
