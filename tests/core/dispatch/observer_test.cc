#include "core/dispatch/observer.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

struct Notes : CallObserver {
  std::vector<std::string> lines;
  std::string mark;
  bool refuses = false;

  explicit Notes(std::string m = "") : mark(std::move(m)) {}
  void enter(const Operator& op, KeySet keys, const Stack&) override {
    if (refuses) throw DataError("[notes] refused.");
    lines.push_back(mark + "> " + op.name() + " " + to_string(keys));
  }
  void exit(const Operator& op, const Stack&) noexcept override {
    lines.push_back(mark + "< " + op.name());
  }
};

using Lines = std::vector<std::string>;

TEST(Observer, IsToldOfEntryAndExitAndOfCallsInBetween) {
  const Tensor x = ones({2, 2});
  Notes notes;
  {
    const ObserverGuard on(notes);
    linear(x, x, {});
  }
  EXPECT_EQ(notes.lines,
            (Lines{"> linear {CPU}", "> t {CPU}", "< t", "> mm {CPU}", "< mm", "< linear"}));
}

TEST(Observer, SeesTheKeysThatAreLeft) {
  const Tensor x = ones({2}).set_requires_grad();
  Notes notes;
  {
    const ObserverGuard on(notes);
    relu(x);
  }
  EXPECT_EQ(notes.lines, (Lines{"> relu {Autograd, CPU}", "< relu"}));
}

TEST(Observer, SeesArgumentsAndResults) {
  struct Shapes : CallObserver {
    std::vector<std::string> lines;
    void enter(const Operator& op, KeySet, const Stack& call) override {
      lines.push_back("> " + op.name() + " " + call.arguments()[0].to_string());
      EXPECT_TRUE(call.results().empty());
    }
    void exit(const Operator& op, const Stack& call) noexcept override {
      const bool has_result = !call.results().empty();
      lines.push_back("< " + op.name() + (has_result ? " " + call.results()[0].to_string() : ""));
    }
  } shapes;
  const Tensor a = ones({2, 3}), b = ones({3, 4}).set_requires_grad();
  const Tensor out = empty({2, 3});
  {
    const ObserverGuard on(shapes);
    mm(a, b);
    add_out(out, a, a);
    EXPECT_THROW(mm(a, a), ShapeError);
  }
  EXPECT_EQ(shapes.lines, (Lines{"> mm float32[2, 3] on cpu", "< mm float32[2, 4] on cpu",
                                 "> add.out float32[2, 3] on cpu", "< add.out float32[2, 3] on cpu",
                                 "> mm float32[2, 3] on cpu", "< mm"}));
}

TEST(Observer, IsToldOfTheExitOfACallThatThrows) {
  const Tensor a = ones({2, 3});
  Notes notes;
  const ObserverGuard on(notes);
  EXPECT_THROW(mm(a, a), ShapeError);
  EXPECT_EQ(notes.lines, (Lines{"> mm {CPU}", "< mm"}));
}

TEST(Observer, OnesThatWereToldOfAnEntryAreToldOfTheExitWhenAnotherRefuses) {
  const Tensor a = ones({2});
  Notes outer, inner;
  outer.refuses = true;
  const ObserverGuard first(outer);
  const ObserverGuard second(inner);
  expect_error<DataError>([&] { relu(a); }, "refused");
  EXPECT_EQ(inner.lines, (Lines{"> relu {CPU}", "< relu"}));
  EXPECT_TRUE(outer.lines.empty());
}

TEST(Observer, GuardsNestAndEndWithTheirScope) {
  const Tensor a = ones({2});
  Notes outer("outer"), inner("inner");
  {
    const ObserverGuard first(outer);
    {
      const ObserverGuard second(inner);
      relu(a);
    }
    neg(a);
  }
  neg(a);
  EXPECT_EQ(inner.lines, (Lines{"inner> relu {CPU}", "inner< relu"}));
  EXPECT_EQ(outer.lines.size(), 4u);
}

TEST(Observer, BelongsToItsThread) {
  Notes notes;
  const ObserverGuard on(notes);
  std::thread([] { ones({2}); }).join();
  EXPECT_TRUE(notes.lines.empty());
}

}  // namespace
}  // namespace lockstep
