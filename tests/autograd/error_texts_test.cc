// The whole texts of autograd's errors: what is wrong, what was expected, what to do.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "autograd/anomaly_mode.h"
#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/checkpoint.h"
#include "autograd/function.h"
#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "autograd/hooks.h"
#include "autograd/host_activations.h"
#include "autograd/saved_tensor_hooks.h"
#include "autograd/set_data.h"
#include "autograd/transforms.h"
#include "autograd/vmap.h"
#include "core/base/error.h"
#include "core/dispatch/call_op.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/autograd/sample_operators.h"

namespace lockstep {
namespace {

using sample::leaf;
using sample::vector;

std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

void once_more(const Tensor& root) {
  root.backward();
  root.backward();
}

TEST(ErrorTexts, OfBackward) {
  const Tensor x = leaf({1, 2});
  EXPECT_EQ(
      text_of([&] { (x * 2).backward(); }),
      "[backward] a root of several elements needs a gradient: expected one of shape [2], got "
      "none. Pass it, or reduce the root to a number first (sum() or mean()).");
  EXPECT_EQ(text_of([&] { vector({1}).backward(); }),
            "[backward] tensor 0 (float64[1] on cpu) does not require grad and has no grad_fn, so "
            "nothing leads from it to a leaf. Was it computed under a NoGradGuard, or detached?");
  EXPECT_EQ(text_of([&] {
              backward({x.sum()}, {vector({1}), vector({1})});
            }),
            "[backward] wrong number of gradients: expected 1, one per root, got 2.");
  EXPECT_EQ(
      text_of([&] { backward({}); }),
      "[backward] there is nothing to differentiate: expected at least one tensor, got none.");
  EXPECT_EQ(text_of([&] { grad({x.sum()}, TensorList{}); }),
            "[grad] there is nothing to differentiate with respect to: expected inputs, got none.");
  EXPECT_EQ(text_of([&] { grad({x.sum()}, {leaf({1})}); }),
            "[grad] input 0 (float64[1] on cpu) was not used to compute the outputs, so it has no "
            "gradient. Set allow_unused to get an undefined tensor for it, or materialize_grads to "
            "get zeros.");
  EXPECT_EQ(
      text_of([&] {
        const Edge unused = gradient_edge(leaf({1}) * 2);
        grad({x.sum()}, {&unused, 1});
      }),
      "[grad] input 0 (gradient 0 of MulBackward1) was not used to compute the outputs, so it "
      "has no gradient. Set allow_unused to get an undefined tensor for it, or "
      "materialize_grads to get zeros.");
  EXPECT_EQ(text_of([&] { grad({x.sum()}, {vector({1})}); }),
            "[grad] input 0 (float64[1] on cpu) does not require grad. Call set_requires_grad() "
            "before it is used.");
  BackwardOptions options;
  options.inputs = {vector({1})};
  EXPECT_EQ(text_of([&] { backward({x.sum()}, {}, options); }),
            "[backward] inputs: expected tensors that require grad, got float64[1] on cpu. Call "
            "set_requires_grad() before it is used.");
  EXPECT_EQ(
      text_of([&] { once_more((x * x).sum()); }),
      "[MulBackward0] the tensors it saved were freed, because a backward already ran through "
      "it: expected one backward per graph. Pass retain_graph to the first, or compute the "
      "result again.");
  EXPECT_EQ(text_of([] { queue_callback([] {}); }),
            "[queue_callback] this thread is in no backward: expected a call from a hook or a "
            "derivative.");
  EXPECT_EQ(text_of([] { sample::short_of_one(leaf({1}), leaf({1})).backward(); }),
            "[TestShortOfOneBackward0] returned too few gradients: expected 2, one per tensor "
            "argument, got 1.");
}

TEST(ErrorTexts, OfHooksAndAnomalies) {
  const Tensor x = leaf({1, 2});
  EXPECT_EQ(text_of([&] { vector({1}).register_hook([](const Tensor& grad) { return grad; }); }),
            "[register_hook] no gradient will ever come: expected a tensor that requires grad, got "
            "float64[1] on cpu. Call set_requires_grad() first.");
  const std::string no_gradient =
      " no gradient will ever come: expected a tensor that requires grad, got float64[1] on cpu. "
      "Call set_requires_grad() first.";
  EXPECT_EQ(text_of([&] { vector({1}).retain_grad(); }), "[retain_grad]" + no_gradient);
  EXPECT_EQ(text_of([&] { register_post_accumulate_grad_hook(vector({1}), [](const Tensor&) {}); }),
            "[register_post_accumulate_grad_hook]" + no_gradient);
  EXPECT_EQ(text_of([&] {
              register_multi_grad_hook({x, vector({1})}, [](std::span<const Tensor>) {});
            }),
            "[register_multi_grad_hook]" + no_gradient);
  EXPECT_EQ(
      text_of([&] { register_post_accumulate_grad_hook(x * 2, [](const Tensor&) {}); }),
      "[register_post_accumulate_grad_hook] expected a leaf, got float64[2] on cpu, which was "
      "computed by MulBackward1. Use register_hook() for its gradient.");
  const Tensor y = (leaf({1}) * 0).sqrt() * 0;
  const AnomalyModeGuard on;
  EXPECT_EQ(
      text_of([&] { y.sum().backward(); }),
      "[SqrtBackward0] made the first NaN: gradient 0 (float64[1] on cpu) of this node has one, "
      "and what it took had none.");
  const std::string recorded = text_of([] { sample::failing(leaf({1})).backward(); });
  const size_t note =
      recorded.find("\nThe forward call behind TestFailingBackward0 was made here:\n  at ");
  ASSERT_NE(note, std::string::npos) << recorded;
  EXPECT_NE(recorded.find("\n  at ", note + 80), std::string::npos) << recorded;
  const Tensor z = leaf({2});
  GradOptions options;
  options.create_graph = true;
  const Tensor first = grad({(z * z).sum()}, {z}, {}, options)[0];
  EXPECT_NE(first.grad_fn()->forward_site()->describe().find(
                "\nin a backward, by MulBackward0, which was recorded here:\n  at "),
            std::string::npos);
}

TEST(ErrorTexts, OfInPlaceChanges) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  EXPECT_EQ(
      text_of([&] { x.zero_(); }),
      "[zero_] a leaf that requires grad is changed in place: float64[2] on cpu. Use the form "
      "that returns a new tensor, or a NoGradGuard when the change is not part of the "
      "computation.");
  EXPECT_EQ(text_of([&] { x.slice(0, 0, 1).zero_(); }),
            "[zero_] a view of a leaf that requires grad is changed in place: float64[1] on cpu of "
            "float64[2] on cpu. Use the form that returns a new tensor, or a NoGradGuard when the "
            "change is not part of the computation.");
  EXPECT_EQ(text_of([&] { y.split(1)[0].zero_(); }),
            "[zero_] a view made together with others (split) is changed in place: float64[1] on "
            "cpu. Use the form that returns a new tensor, or make the view with slice().");
  Tensor unrecorded;
  {
    const NoGradGuard guard;
    unrecorded = y.slice(0, 0, 1);
  }
  EXPECT_EQ(
      text_of([&] { unrecorded.mul_(leaf({1})); }),
      "[mul_.Tensor] a view made while recording was off is changed in place while it is on: "
      "float64[1] on cpu. Make the view with recording on, or change it under a NoGradGuard.");
  EXPECT_EQ(text_of([&] { call_op("detach_", {Value(y.select(0, 0))}); }),
            "[detach_] a view cannot leave the graph while its base stays: float64[] on cpu of "
            "float64[2] on cpu. Use detach().");
  {
    const Tensor base = x * 2;
    const std::vector<Tensor> parts = base.split(1);
    base.mul_(vector({1, 2}));
    EXPECT_EQ(text_of([&] { parts[0].sum(); }),
              "[SplitBackward0] a view of [1] is used after its base or another view of it was "
              "changed in place. Views made several at a time cannot follow such a change: use "
              "operators that return new tensors, or make the view with slice() or select().");
  }
  const Tensor product = y * y;
  y.add_(y);
  EXPECT_EQ(text_of([&] { product.sum().backward(); }),
            "[mul.Tensor] a tensor needed for its gradient was changed in place after it was used: "
            "float64[2], an argument of mul.Tensor, expected at version 0, got version 1. Change a "
            "clone() instead, or use the form of the later operator that returns a new tensor.");
  EXPECT_EQ(
      text_of([&] { call_op("test_constant_", {Value(x * 2)}); }),
      "[test_constant_] changes float64[2] on cpu, which requires grad, and has no derivative "
      "(a test treats it as a constant). Use a NoGradGuard or detach() it.");
  EXPECT_EQ(
      text_of([&] { sample::silent(x); }),
      "[test_silent] an argument requires grad, and no derivative is declared. Call it under a "
      "NoGradGuard, or with detached arguments.");
  EXPECT_EQ(text_of([&] { sample::copy_backward(x).sum().backward(); }),
            "[test_copy_backward] has no derivative: nobody has written it. Do not differentiate "
            "through it.");
  EXPECT_EQ(text_of([&] {
              add_out(vector({0, 0}), x, x);
            }),
            "[add.out] out= cannot be recorded: expected no argument that requires grad. Use the "
            "form that returns a new tensor, or a NoGradGuard.");
}

TEST(ErrorTexts, OfTensorMethods) {
  EXPECT_EQ(text_of([] { tensor_from<int64_t>({1}, {1}).set_requires_grad(); }),
            "[set_requires_grad] only floating-point tensors have gradients: got int64[1] on cpu. "
            "Cast with to(dtype) first.");
  EXPECT_EQ(
      text_of([] { (leaf({1}) * 2).set_requires_grad(false); }),
      "[set_requires_grad] a computed tensor cannot stop requiring grad: float64[1] on cpu. Use "
      "detach().");
  EXPECT_EQ(
      text_of([] {
        vmap([](const Tensor& x) { return x.set_requires_grad(); })(sample::matrix(2, 2, false));
      }),
      "[set_requires_grad] one sample of a batch cannot require grad by itself: float64[2] on "
      "cpu. Inside vmap use grad(f), or mark the whole batch outside.");
  Tensor inference;
  {
    const InferenceModeGuard guard;
    inference = vector({1});
  }
  EXPECT_EQ(
      text_of([&] { inference.set_requires_grad(); }),
      "[set_requires_grad] a tensor made in inference mode cannot require grad: float64[1] on "
      "cpu. clone() it outside that mode first.");
  EXPECT_EQ(text_of([&] { leaf({1}) * inference; }),
            "[saved_tensor] a tensor made in inference mode cannot be saved for a backward: "
            "float64[1] on cpu. clone() it outside that mode first.");
  EXPECT_EQ(text_of([] { AutocastGuard(DeviceType::kCPU, true, DType::kF32); }),
            "[autocast] expected bfloat16 or float16, got float32.");
  EXPECT_EQ(text_of([] { gradcheck([](TensorList in) { return in[0]; }, {vector({1})}); }),
            "[gradcheck] nothing to check: expected an input that requires grad, got none.");
  EXPECT_EQ(text_of([] { HostActivations(kCPU, {}); }),
            "[host_activations] expected a device with memory of its own, got cpu, whose memory is "
            "the host's.");
  EXPECT_EQ(text_of([] {
              const Tensor hooked = leaf({1});
              hooked.register_hook([](const Tensor& grad) { return grad; });
              set_data(hooked, vector({1}));
            }),
            "[set_data] float64[1] on cpu has hooks or a place for its gradient: expected neither. "
            "Move it before they are added.");
}

TEST(ErrorTexts, OfSavedTensorHooksAndCheckpoints) {
  const Tensor x = leaf({1, 2});
  {
    const SavedTensorHooksGuard guard({[](const Tensor& tensor) -> std::any {
                                         tensor.add_(tensor);
                                         return tensor;
                                       },
                                       [](const std::any&) { return Tensor(); }});
    EXPECT_EQ(text_of([&] { x.exp(); }),
              "[saved_tensor_hooks] the pack hook changed the tensor in place: float64[2] on cpu. "
              "Pack a clone() instead.");
  }
  const auto unpacking = [&](const Tensor& result) {
    const SavedTensorHooksGuard guard(
        {[](const Tensor&) { return std::any(); }, [result](const std::any&) { return result; }});
    return x.exp().sum();
  };
  EXPECT_EQ(text_of([&] { unpacking({}).backward(); }),
            "[saved_tensor_hooks] the unpack hook gave an undefined tensor to exp: expected "
            "float64[2].");
  EXPECT_EQ(
      text_of([&] { unpacking(vector({1})).backward(); }),
      "[saved_tensor_hooks] the unpack hook gave exp another tensor than was packed: expected "
      "float64[2] on cpu, got float64[1] on cpu.");
  int calls = 0;
  const auto shapes = [&](const Tensor& y) {
    return (++calls % 2 == 1 ? y : y.slice(0, 0, 1)).exp().sum();
  };
  EXPECT_EQ(
      text_of([&] { checkpoint(shapes, x).backward(); }),
      "[checkpoint] recomputation did not do what forward did: expected float64[2] on cpu as "
      "the 1. tensor that it saves, got float64[1] on cpu. The function must compute the same "
      "when it is called again.");
  calls = 0;
  const auto fewer = [&](const Tensor& y) {
    return ++calls % 2 == 1 ? y.exp().exp().sum() : y.exp().sum();
  };
  EXPECT_EQ(
      text_of([&] { checkpoint(fewer, x).backward(); }),
      "[checkpoint] recomputation did not do what forward did: expected it to save 2 tensors, "
      "got 1. The function must compute the same when it is called again.");
  const auto changes = [](const Tensor& y) {
    const Tensor z = y.exp();
    z.mul_(vector({2, 2}));
    return z.exp().sum();
  };
  EXPECT_EQ(text_of([&] { checkpoint({.early_stop = false}, changes, x).backward(); }),
            "[checkpoint] a tensor needed for a gradient was changed in place after it was used: "
            "float64[2] on cpu, expected at version 0, got version 1. Change a clone() instead.");
}

struct Plain : Function<Plain> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * 2;
  }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    ctx.saved(0);
    return {grad * 2};
  }
};
struct WithoutData : Function<WithoutData> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x * 2; }
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    return {grad * ctx.data<double>()};
  }
};
struct TakesOne : Function<TakesOne> {
  static std::vector<Tensor> forward(FunctionContext&, const Tensor& x) { return {x * 1, x * 2}; }
  static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad}; }
};
struct ReturnsNone : Function<ReturnsNone> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x * 2; }
  static Gradients backward(FunctionContext&, const Tensor&) { return {}; }
};
struct OnlyOnce : Function<OnlyOnce> {
  static constexpr bool once_differentiable = true;
  static Tensor forward(FunctionContext&, const Tensor& x) { return x * 2; }
  static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad * 2}; }
};
enum class Mark { kOther, kNotReturned, kBoth, kSecond };
struct Marked : Function<Marked> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, const Tensor& y, Mark mark) {
    const Tensor other = x * 1;
    ctx.mark_dirty({mark == Mark::kOther ? other : mark == Mark::kSecond ? y : x});
    if (mark == Mark::kBoth) ctx.mark_non_differentiable({x});
    return mark == Mark::kBoth ? x : mark == Mark::kSecond ? y : other;
  }
  static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad, grad}; }
};
struct Itself : Function<Itself> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x; }
  static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad}; }
};
struct WithoutBatch : Function<WithoutBatch> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x * 1; }
  static Gradients backward(FunctionContext&, const Tensor& grad) { return {grad}; }
  static Tensor vmap(const FunctionBatch&, const Tensor& x) { return x.select(0, 0); }
};

TEST(ErrorTexts, OfFunctions) {
  const Tensor x = leaf({1, 2});
  EXPECT_EQ(
      text_of([&] { once_more(Plain::apply(x).sum()); }),
      "[PlainBackward] the tensors it saved were freed, because a backward already ran through "
      "it: expected one backward per graph. Pass retain_graph to the first, or compute the "
      "result again.");
  EXPECT_EQ(text_of([&] { WithoutData::apply(x).sum().backward(); }),
            "[WithoutData] no value of the type that was asked for is attached. Call set_data in "
            "forward with exactly that type.");
  EXPECT_EQ(text_of([&] { TakesOne::apply(x)[0].sum().backward(); }),
            "[TakesOne] backward takes 1 gradients, but forward returned 2 results. Take one per "
            "result, or a TensorList.");
  EXPECT_EQ(text_of([&] { ReturnsNone::apply(x).sum().backward(); }),
            "[ReturnsNone] backward returned the wrong number of gradients: expected 1, one per "
            "tensor argument of forward (each of a list counts), got 0. An undefined Tensor stands "
            "for zero.");
  EXPECT_EQ(text_of([&] {
              const Tensor first =
                  grad({OnlyOnce::apply(x).sum()}, {x}, {}, {.create_graph = true})[0];
              first.sum().backward();
            }),
            "[OnlyOnce] its backward is differentiated, but it declares once_differentiable. Write "
            "backward with recorded operators and take the declaration away, or do not ask for "
            "second derivatives.");
  const Tensor y = x * 2;
  const auto marked = [&](const Tensor& first, const Tensor& second, Mark mark) {
    return text_of([&] { Marked::apply(first, second, mark); });
  };
  EXPECT_EQ(marked(y, x, Mark::kOther),
            "[Marked] mark_dirty: expected arguments of forward, got another tensor: float64[2] on "
            "cpu.");
  EXPECT_EQ(marked(y, x, Mark::kNotReturned),
            "[Marked] an argument that is marked dirty is not returned: float64[2] on cpu. Return "
            "each one that forward changes in place.");
  EXPECT_EQ(marked(y, x, Mark::kBoth),
            "[Marked] an argument is marked both dirty and non-differentiable: float64[2] on cpu. "
            "Return a detached copy, or let its gradient be zero.");
  EXPECT_EQ(marked(y, y.slice(0, 0, 1), Mark::kSecond),
            "[Marked] a view is marked dirty: expected it to be the first tensor argument, and the "
            "only result, got 1 results. Change a clone() instead.");
  const Tensor base = x * 3;
  const Tensor view = Itself::apply(base);
  base.mul_(vector({3, 3}));
  EXPECT_EQ(text_of([&] { view.sum(); }),
            "[ItselfBackward] a view of [2] that a custom Function made is used after its base or "
            "another view of it was changed in place, which the Function's backward does not know. "
            "clone() the Function's result first.");
  const Tensor batch = sample::matrix(2, 3, false);
  EXPECT_EQ(text_of([&] { vmap([](const Tensor& a) { return WithoutBatch::apply(a); })(batch); }),
            "[WithoutBatch] its vmap method returned float64[3] on cpu: expected the batch of 2 in "
            "front. Expand what is the same for all samples.");
  EXPECT_EQ(
      text_of([&] { vmap([](const Tensor& a) { return Itself::apply(a); })(batch); }),
      "[Itself] has no vmap method, and an argument is one sample of a batch. Give it a static "
      "method vmap(const FunctionBatch&, ...) with forward's other parameters, or call it "
      "outside of vmap.");
}

TEST(ErrorTexts, OfVmapAndTransforms) {
  const Tensor batch = sample::matrix(2, 3, false);
  const auto same_one = [](const Tensor& x) { return x; };
  const auto add = [](const Tensor& a, const Tensor& b) { return a + b; };
  EXPECT_EQ(text_of([&] { vmap(add, {.in_dims = {0}})(batch, batch); }),
            "[vmap] in_dims must have one entry per input: expected 2 entries, got 1.");
  EXPECT_EQ(text_of([&] { vmap(add)(batch, sample::matrix(4, 3, false)); }),
            "[vmap] the inputs hold different numbers of samples: input 0 holds 2, input 1 (shape "
            "[4, 3], in_dim 0) holds 4. Give inputs that are no batch the in_dim nullopt.");
  EXPECT_EQ(
      text_of([&] { vmap(same_one, {.in_dims = {std::nullopt}})(batch); }),
      "[vmap] no input is a batch: expected at least one in_dim that is a dimension. Call the "
      "function itself instead.");
  EXPECT_EQ(text_of([&] { vmap(same_one, {.in_dims = {2}})(batch); }),
            "[vmap] input 0 has no dimension 2 for the samples: expected one in [-2, 1] for shape "
            "[2, 3].");
  EXPECT_EQ(text_of([&] {
              vmap(same_one, {.out_dims = {0, 0}})(batch);
            }),
            "[vmap] out_dims must have one entry per output: expected 1 entries, got 2.");
  EXPECT_EQ(text_of([&] { vmap(same_one, {.out_dims = {std::nullopt}})(batch); }),
            "[vmap] output 0 differs from sample to sample, and its out_dim says that it does not: "
            "expected a dimension, got nullopt. Set out_dims.");
  EXPECT_EQ(text_of([&] { vmap([](const Tensor&) { return Tensor(); })(batch); }),
            "[vmap] output 0 is undefined: expected a tensor. Return only defined tensors.");
  EXPECT_EQ(
      text_of([&] { vmap([](const Tensor& x) { return add_out(empty({3}), x, x); })(batch); }),
      "[add.out] out= cannot be batched: expected no sample of a batch among the arguments. "
      "Use the form that returns a new tensor.");
  EXPECT_EQ(
      text_of([&] { vmap([](const Tensor& x) { return nonzero(x); })(batch); }),
      "[nonzero] returns as many elements as the values ask for, which differ from sample to "
      "sample: expected an operator whose result has one shape. Use where, or call it outside "
      "of vmap.");
  const std::string number =
      text_of([&] { vmap([](const Tensor& x) { return x * sum(x).item<double>(); })(batch); });
  EXPECT_EQ(number.substr(number.find(']')),
            "] returns one number, and under vmap a tensor stands for many samples: expected an "
            "operator that returns a tensor. Use where instead of a branch, or read the value "
            "outside of vmap.");
  EXPECT_EQ(text_of([&] { vmap([](const Tensor& x) { return x + rand({3}); })(batch); }),
            "[rand.generator] draws random numbers in a function that vmap runs: it is not "
            "specified whether "
            "samples share them. Set VmapOptions::randomness to kSame or kDifferent.");
  Tensor kept;
  vmap([&](const Tensor& x) { return kept = x; })(batch);
  EXPECT_EQ(
      text_of([&] { kept.exp(); }),
      "[exp] an argument is one sample of a batch, and the vmap that made it does not run "
      "here: expected its use inside the function that was given to vmap, on the same thread. "
      "Return it from that function instead of keeping it.");
  EXPECT_EQ(
      text_of([&] {
        grad([](const Tensor& x) { return x * 2; })(vector({1, 2}));
      }),
      "[grad] only a function that returns one floating number has a gradient: expected a 0-d "
      "tensor, got float64[2] on cpu. Sum or average what it returns.");
  EXPECT_EQ(
      text_of([&] {
        grad([](const Tensor&) { return Tensor(); })(vector({1, 2}));
      }),
      "[grad] only a function that returns one floating number has a gradient: expected a 0-d "
      "tensor, got nothing. Sum or average what it returns.");
  EXPECT_EQ(text_of([&] {
              grad([](const Tensor& x) { return x.sum(); }, {1})(vector({1, 2}));
            }),
            "[grad] there is no input 1: expected a number below 1.");
}

}  // namespace
}  // namespace lockstep
