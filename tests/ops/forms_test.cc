// In-place and out= forms share rule and kernel with the functional form and must agree with it.

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "core/base/error.h"
#include "tests/ops/operator_forms.h"

namespace lockstep {
namespace {

/// Order of dtype categories: a result may be written into its own category or a higher one.
int category(DType dtype) { return is_floating(dtype) ? 2 : is_integral(dtype) ? 1 : 0; }

bool fits(const Tensor& result, const Tensor& self) {
  return same(result.sizes(), self.sizes()) && category(result.dtype()) <= category(self.dtype());
}

/// The arguments with gaps in the strides of argument 0.
Arguments with_strided_self(Arguments arguments) {
  arguments[0] = Value(with_gaps(arguments[0].tensor()));
  return arguments;
}

/// Calls `body(functional, samples, form)` for each form of each operator that has samples.
void for_each_form(
    bool in_place,
    const std::function<void(const Operator&, const OpSamples&, const WritingForm&)>& body) {
  for_each_operator([&](const Operator& op, const OpSamples& samples) {
    for (const WritingForm& form : writing_forms(op)) {
      if (form.in_place != in_place) continue;
      SCOPED_TRACE(form.op->name());
      body(op, samples, form);
    }
  });
}

TEST(InPlaceForms, WriteWhatTheFunctionalFormReturns) {
  for_each_form(true, [](const Operator& op, const OpSamples& samples, const WritingForm& form) {
    int tried = 0;
    for_each_sample(samples.calls, [&](const Sample& sample) {
      Arguments arguments = arguments_of(op, sample);
      Results want = call_operator(op, arguments);
      // In-place forms of views change the geometry, so any result fits.
      const bool view = op.kind() == OpKind::kView;
      if (!view && !fits(want.tensors.at(0), arguments[0].tensor())) return;
      want.tensors[0] = cast_copy(want.tensors[0], arguments[0].tensor().dtype());
      for (const Arguments& given :
           {arguments_of(op, sample), with_strided_self(arguments_of(op, sample))}) {
        std::optional<Arguments> fresh = form.arguments(op, given);
        if (!fresh) return;
        if (samples.reads_strides && !given[0].tensor().is_contiguous()) continue;
        ++tried;
        const Tensor self = given[0].tensor();
        const Tensor before = cast_copy(self, self.dtype());
        const uint32_t version = self.version();
        const Results got = call_operator(*form.op, *fresh);
        EXPECT_TRUE(got.tensors.at(0).is_same(self));
        const bool changed = !difference({{self}}, {{before}}, 0).empty();
        EXPECT_GE(self.version(), version + (changed ? 1 : 0));
        if (samples.unspecified_values) continue;
        EXPECT_EQ(difference({{self}}, want, 1e-6), "");
      }
    });
    EXPECT_GT(tried, 0) << "no sample's result fits into its first argument";
  });
}

/// Gradients of the float32 tensors of a call for a fixed gradient of its first result. A form
/// writes into a copy of the first argument, as leaves must not be written.
Results gradients(const Operator& op, const WritingForm* form, const Sample& sample) {
  Arguments arguments = arguments_of(op, sample);
  std::vector<Tensor> leaves;
  for (const Value& value : arguments) {
    each_defined_tensor(value, [&](const Tensor& tensor) {
      if (tensor.dtype() == DType::kF32) leaves.push_back(tensor.set_requires_grad());
    });
  }
  if (form != nullptr) {
    arguments[0] = Value(arguments[0].tensor().clone());
    arguments = *form->arguments(op, arguments);
  }
  const Results results = call_operator(form != nullptr ? *form->op : op, arguments);
  const Tensor& result = results.tensors.at(0);
  GradOptions options;
  options.allow_unused = true;
  if (!result.requires_grad()) return {};
  return {grad({result}, leaves, {floats(result.sizes(), 9)}, options)};
}

TEST(InPlaceForms, GiveTheGradientsOfTheFunctionalForm) {
  for_each_form(true, [](const Operator& op, const OpSamples& samples, const WritingForm& form) {
    if (!op.derivative().exists()) return;
    for_each_sample(samples.calls, [&](const Sample& sample) {
      Arguments arguments = arguments_of(op, sample);
      const Tensor self = arguments[0].tensor();
      const Tensor result = call_operator(op, arguments).tensors.at(0);
      if (!fits(result, self) || self.dtype() != DType::kF32) return;
      if (!form.arguments(op, arguments)) return;
      EXPECT_EQ(difference(gradients(op, &form, sample), gradients(op, nullptr, sample), 1e-6), "");
    });
  });
}

TEST(InPlaceForms, RefuseAResultOfAnotherShape) {
  const Operator& add = dispatcher().find("add_.Tensor");
  Arguments arguments = arguments_of(add, call("", floats({4}), floats({3, 4})));
  EXPECT_THROW(call_operator(add, arguments), ShapeError);
}

/// State of a destination before the call: empty, of the result's size, or strided.
enum class Room : uint8_t { kNone, kDense, kStrided };

Tensor destination(const Tensor& result, Room room) {
  // Absent results are not written.
  if (!result.defined() || room == Room::kNone) {
    return empty_tensor({0}, result.defined() ? result.dtype() : DType::kF32);
  }
  const Tensor dense = empty_tensor(result.sizes(), result.dtype());
  return room == Room::kDense ? dense : with_gaps(dense);
}

/// Sets the destinations of a form: separate arguments or one list.
void set_outputs(const WritingForm& form, Arguments& arguments,
                 const std::vector<Tensor>& tensors) {
  const std::vector<size_t> places = form.outputs();
  if (form.op->schema().arguments[places.at(0)].type.list) {
    arguments[places[0]] = Value(std::vector<Tensor>(tensors));
    return;
  }
  ASSERT_EQ(places.size(), tensors.size());
  for (size_t i = 0; i < places.size(); ++i) arguments[places[i]] = Value(tensors[i]).own();
}

TEST(OutForms, WriteWhatTheFunctionalFormReturns) {
  for_each_form(false, [](const Operator& op, const OpSamples& samples, const WritingForm& form) {
    int tried = 0;
    for_each_sample(samples.calls, [&](const Sample& sample) {
      Arguments arguments = arguments_of(op, sample);
      const Results want = call_operator(op, arguments);
      for (const Room room : {Room::kNone, Room::kDense, Room::kStrided}) {
        std::optional<Arguments> fresh = form.arguments(op, arguments_of(op, sample));
        if (!fresh) return;
        ++tried;
        Results outputs;
        for (const Tensor& result : want.tensors) {
          outputs.tensors.push_back(destination(result, room));
        }
        set_outputs(form, *fresh, outputs.tensors);
        const Results got = call_operator(*form.op, *fresh);
        for (size_t i = 0; i < outputs.tensors.size(); ++i) {
          if (!want.tensors[i].defined()) {
            outputs.tensors[i] = Tensor();
          } else {
            EXPECT_TRUE(got.tensors.at(i).is_same(outputs.tensors[i]));
          }
        }
        if (samples.unspecified_values) continue;
        EXPECT_EQ(difference(outputs, want, 1e-6), "");
      }
    });
    EXPECT_GT(tried, 0) << "no sample can be given to it";
  });
}

}  // namespace
}  // namespace lockstep
