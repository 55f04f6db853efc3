// Every operator in every dtype. The dtypes that it must accept follow from its samples:
//   float32 arguments     all floating dtypes
//   int64 arguments       all integer dtypes; bool may be accepted or refused
//   indices and targets   int64; other dtypes may be accepted or refused
// unless its samples give a reason in `refuses`. A refusal is a DTypeError. Results are those of
// the same call in the widest dtype, on the same rounded arguments.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autograd/autograd.h"
#include "core/base/error.h"
#include "tests/conformance/elements.h"
#include "tests/ops/operator_call.h"

namespace lockstep {
namespace {

constexpr DType kFloating[] = {DType::kF16, DType::kBF16, DType::kF64};
constexpr DType kIntegers[] = {DType::kU8, DType::kI8, DType::kI16, DType::kI32};

bool is_half(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

/// Absolute and relative tolerance: a few roundings to the dtype, as composites round in between.
/// Float64 is compared with float32.
double tolerance(DType dtype) {
  if (dtype == DType::kBF16) return 5 * 0x1p-8;
  if (dtype == DType::kF16) return 5 * 0x1p-11;
  return 1e-4;
}

/// Whether the argument's integers are indices, not data.
bool is_index(const Argument& argument) {
  constexpr std::string_view kNames[] = {"index",  "indices", "target", "offsets",
                                         "sorter", "repeats", "start"};
  return std::find(std::begin(kNames), std::end(kNames), argument.name) != std::end(kNames);
}

using Choice = std::function<bool(const Argument&, const Tensor&)>;

/// Rounds to a value that even bfloat16 represents exactly.
double eighths(double x) { return std::round(x * 8) / 8; }

/// Whether `choice` selects each tensor of the arguments, in order.
std::vector<bool> chosen(const Operator& op, const Arguments& arguments, const Choice& choice) {
  std::vector<bool> flags;
  for (size_t i = 0; i < arguments.size(); ++i) {
    each_defined_tensor(arguments[i], [&](const Tensor& tensor) {
      flags.push_back(choice(op.schema().arguments[i], tensor));
    });
  }
  return flags;
}

bool any(const std::vector<bool>& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}

/// A number rounded to the dtype. Integers stay integers, floats stay floats.
Value rounded(const Value& value, DType dtype) {
  if (value.tag() == Value::Tag::kDouble && is_floating(dtype)) {
    return with_element_type(dtype, [&]<class T>(T) {
      return Value(static_cast<double>(static_cast<T>(value.to_double())));
    });
  }
  if (value.tag() == Value::Tag::kInt && is_integral(dtype)) {
    return with_element_type(dtype, [&]<class T>(T) {
      return Value(static_cast<int64_t>(static_cast<T>(value.to_int())));
    });
  }
  return value;
}

/// The arguments with the chosen tensors cast to `to`, numbers rounded to it, and a dtype argument
/// of `from` replaced by `to`.
Arguments cast(const Operator& op, const Arguments& arguments, const std::vector<bool>& chosen,
               DType from, DType to) {
  size_t next = 0;
  Arguments result = map_tensors(arguments, [&](const Tensor& tensor) {
    return cast_copy(tensor, chosen[next++] ? to : tensor.dtype());
  });
  for (size_t i = 0; i < result.size(); ++i) {
    Value& value = result[i];
    if (value.tag() == Value::Tag::kDType && value.to_dtype() == from) value = Value(to);
    if (op.schema().arguments[i].type.base == BaseType::kScalar) value = rounded(value, to);
  }
  return result;
}

/// The results, or nothing when the call throws DTypeError. Does not modify the arguments.
std::optional<Results> accepted(const Operator& op, const Arguments& arguments) {
  Arguments fresh = map_tensors(
      arguments, [](const Tensor& tensor) { return cast_copy(tensor, tensor.dtype()); });
  try {
    return call_operator(op, fresh);
  } catch (const DTypeError&) {
    return std::nullopt;
  }
}

std::vector<DType> dtypes_of(const Results& results) {
  std::vector<DType> dtypes;
  for (const Tensor& tensor : results.tensors) {
    dtypes.push_back(tensor.defined() ? tensor.dtype() : DType::kBool);
  }
  return dtypes;
}

Results in_dtypes(const Results& results, const std::vector<DType>& dtypes) {
  Results cast;
  for (size_t i = 0; i < results.tensors.size(); ++i) {
    const Tensor& tensor = results.tensors[i];
    cast.tensors.push_back(tensor.defined() ? cast_copy(tensor, dtypes.at(i)) : tensor);
  }
  return cast;
}

void expect_shapes(const Results& got, const Results& want) {
  ASSERT_EQ(got.tensors.size(), want.tensors.size());
  for (size_t i = 0; i < got.tensors.size(); ++i) {
    if (!got.tensors[i].defined()) continue;
    EXPECT_EQ(got.tensors[i].shape(), want.tensors[i].shape());
  }
}

/// The widest floating dtype that the operator accepts.
DType widest_dtype(const OpSamples& samples) {
  return samples.refuses.contains(DType::kF64) ? DType::kF32 : DType::kF64;
}

/// Expects the arguments' dtype for results that are float32 for float32 and `widest` for `widest`.
/// Results of half dtypes after the first, and the first with `wide_first`, may stay float32.
void expect_floating_dtypes(const Results& got, const Results& f32, const Results& wide,
                            DType dtype, DType widest, bool wide_first) {
  ASSERT_EQ(got.tensors.size(), wide.tensors.size());
  for (size_t i = 0; i < got.tensors.size(); ++i) {
    if (!got.tensors[i].defined()) continue;
    const DType found = got.tensors[i].dtype();
    const DType fixed = f32.tensors[i].dtype();
    const bool follows = fixed == DType::kF32 && wide.tensors[i].dtype() == widest;
    const bool statistic =
        follows && (i > 0 || wide_first) && is_half(dtype) && found == DType::kF32;
    if (statistic) continue;
    EXPECT_EQ(name(found), name(follows ? dtype : fixed)) << "result " << i;
  }
}

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_floating(const Operator& op, const OpSamples& samples, const Sample& sample,
                    DType dtype) {
  const Arguments arguments = arguments_of(op, sample);
  const auto is_cast = [&](const Argument& argument, const Tensor& tensor) {
    return is_floating(tensor.dtype()) && !is_among(samples.fixed_dtype, argument.name);
  };
  const std::vector<bool> all = chosen(op, arguments, is_cast);
  if (!any(all)) return;
  const std::vector<bool> cast_ones =
      chosen(op, arguments, [&](const Argument& argument, const Tensor& tensor) {
        const bool statistic = is_among(samples.statistics, argument.name);
        return is_cast(argument, tensor) && !(statistic && is_half(dtype));
      });
  const Arguments in_f32 = cast(op, arguments, all, DType::kF32, DType::kF32);
  const Arguments in_dtype = cast(op, in_f32, cast_ones, DType::kF32, dtype);
  const std::optional<Results> got = accepted(op, in_dtype);
  if (const auto refused = samples.refuses.find(dtype); refused != samples.refuses.end()) {
    EXPECT_FALSE(got.has_value()) << "it was to be refused: " << refused->second;
    return;
  }
  ASSERT_TRUE(got.has_value()) << "refused";
  const std::optional<Results> f32 = accepted(op, in_f32);
  const DType widest = widest_dtype(samples);
  const std::optional<Results> wide = accepted(op, cast(op, in_dtype, all, dtype, widest));
  ASSERT_TRUE(f32.has_value() && wide.has_value());
  if (samples.differs.contains(dtype)) return;
  expect_floating_dtypes(*got, *f32, *wide, dtype, widest, samples.wide_result);
  if (samples.unspecified_values) return;
  const Results& want = dtype == widest ? *f32 : *wide;
  EXPECT_EQ(difference(in_dtypes(*got, dtypes_of(want)), want, tolerance(dtype)), "");
}

TEST(DTypes, FloatingArgumentsAreTakenInEveryFloatingDtype) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    for (const DType dtype : kFloating) {
      SCOPED_TRACE(name(dtype));
      for_each_sample(samples.calls,
                      [&](const Sample& sample) { check_floating(op, samples, sample, dtype); });
    }
  });
}

/// Gradients of the chosen arguments for fixed gradients of the results; empty if nothing was
/// recorded.
Results gradients(const Operator& op, const Arguments& arguments, const std::vector<bool>& chosen) {
  std::vector<Tensor> leaves;
  size_t next = 0;
  Arguments fresh = map_tensors(arguments, [&](const Tensor& tensor) {
    const Tensor copy = cast_copy(tensor, tensor.dtype());
    if (chosen[next++]) leaves.push_back(copy.set_requires_grad());
    return copy;
  });
  std::vector<Tensor> outputs;
  std::vector<Tensor> weights;
  for (const Tensor& result : call_operator(op, fresh).tensors) {
    if (!result.defined() || !result.requires_grad()) continue;
    outputs.push_back(result);
    weights.push_back(cast_copy(map_floats(floats(result.sizes(), 9), eighths), result.dtype()));
  }
  if (outputs.empty()) return {};
  GradOptions options;
  options.allow_unused = true;
  return {grad(outputs, leaves, weights, options)};
}

void check_gradients(const Operator& op, const OpSamples& samples, const Sample& sample,
                     DType dtype) {
  const bool excused = samples.refuses.contains(dtype) || samples.differs.contains(dtype) ||
                       !samples.no_half_gradients.empty();
  const bool differentiable = op.derivative().exists() || op.kind() == OpKind::kComposite;
  if (excused || !differentiable || op.schema().is_mutable()) return;
  const Arguments arguments = arguments_of(op, sample);
  const auto is_data = [&](const Argument& argument, const Tensor& tensor) {
    return is_floating(tensor.dtype()) && !is_among(samples.statistics, argument.name);
  };
  const std::vector<bool> data = chosen(op, arguments, is_data);
  if (!any(data)) return;
  const std::vector<bool> all = chosen(
      op, arguments, [](const Argument&, const Tensor& t) { return is_floating(t.dtype()); });
  const Arguments in_dtype = cast(op, arguments, data, DType::kF32, dtype);
  const Results got = gradients(op, in_dtype, data);
  const Arguments wide = cast(op, in_dtype, all, dtype, widest_dtype(samples));
  const Results want = gradients(op, wide, data);
  for (const Tensor& gradient : got.tensors) {
    if (!gradient.defined()) continue;
    EXPECT_EQ(name(gradient.dtype()), name(dtype));
  }
  ASSERT_EQ(got.tensors.size(), want.tensors.size());
  EXPECT_EQ(difference(in_dtypes(got, dtypes_of(want)), want, 2 * tolerance(dtype)), "");
}

TEST(DTypes, GradientsOfHalfFloatsAreThoseOfTheWidestDType) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      SCOPED_TRACE(name(dtype));
      for_each_sample(samples.calls,
                      [&](const Sample& sample) { check_gradients(op, samples, sample, dtype); });
    }
  });
}

/// Compares a call whose int64 arguments are cast to `dtype` with the same numbers in int64.
void check_integers(const Operator& op, const OpSamples& samples, const Sample& sample, DType dtype,
                    bool required, const Choice& choice) {
  const Arguments arguments = arguments_of(op, sample);
  const std::vector<bool> flags = chosen(op, arguments, [&](const Argument& a, const Tensor& t) {
    return t.dtype() == DType::kI64 && choice(a, t);
  });
  if (!any(flags)) return;
  const Arguments in_dtype = cast(op, arguments, flags, DType::kI64, dtype);
  std::optional<Results> want;
  try {
    want = accepted(op, cast(op, in_dtype, flags, dtype, DType::kI64));
  } catch (const Error&) {
    return;  // for example, 253 (-3 as uint8) is no valid index
  }
  const std::optional<Results> got = accepted(op, in_dtype);
  if (const auto refused = samples.refuses.find(dtype); refused != samples.refuses.end()) {
    EXPECT_FALSE(got.has_value()) << "it was to be refused: " << refused->second;
    return;
  }
  EXPECT_TRUE(got.has_value() || !required) << "refused";
  if (!got) return;
  ASSERT_TRUE(want.has_value());
  expect_shapes(*got, *want);
  for (size_t i = 0; i < got->tensors.size(); ++i) {
    if (!got->tensors[i].defined()) continue;
    const DType found = got->tensors[i].dtype();
    const DType wide = want->tensors[i].dtype();
    // As in ATen, all and any return uint8 for uint8.
    const bool truth = wide == DType::kBool && dtype == DType::kU8;
    EXPECT_TRUE(found == wide || (found == dtype && (wide == DType::kI64 || truth)))
        << "result " << i << " is " << name(found);
  }
  if (samples.unspecified_values || samples.differs.contains(dtype)) return;
  EXPECT_EQ(difference(*got, in_dtypes(*want, dtypes_of(*got)), 1e-5), "");
}

TEST(DTypes, IntegerArgumentsAreTakenInEveryIntegerDtype) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    for (const DType dtype : kIntegers) {
      SCOPED_TRACE(name(dtype));
      for_each_sample(samples.calls, [&](const Sample& sample) {
        check_integers(op, samples, sample, dtype, true,
                       [](const Argument& argument, const Tensor&) { return !is_index(argument); });
      });
    }
  });
}

TEST(DTypes, BoolsAreTakenAsZeroAndOneOrRefused) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    for_each_sample(samples.calls, [&](const Sample& sample) {
      check_integers(op, samples, sample, DType::kBool, false,
                     [](const Argument& argument, const Tensor&) { return !is_index(argument); });
    });
  });
}

TEST(DTypes, IndicesOfOtherDtypesAreTheSamePlacesOrRefused) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    for (const DType dtype : {DType::kI32, DType::kI16, DType::kI8, DType::kU8, DType::kBool}) {
      SCOPED_TRACE(name(dtype));
      const bool would_be_masks = dtype == DType::kU8 || dtype == DType::kBool;
      for_each_sample(samples.calls, [&](const Sample& sample) {
        check_integers(
            op, samples, sample, dtype, false, [&](const Argument& argument, const Tensor&) {
              return is_index(argument) && !(would_be_masks && argument.type.optional_element);
            });
      });
    }
  });
}

TEST(DTypes, FactoriesMakeWhatTheyAreAsked) {
  for_each_operator([](const Operator& op, const OpSamples& samples) {
    const int place = op.schema().find("dtype");
    if (place < 0) return;
    for_each_sample(samples.calls, [&](const Sample& sample) {
      Arguments arguments = arguments_of(op, sample);
      if (!chosen(op, arguments, [](auto&, auto&) { return true; }).empty()) return;
      const auto made = [&](DType dtype) {
        arguments[static_cast<size_t>(place)] = Value(dtype);
        return accepted(op, arguments);
      };
      for (int i = 0; i < kDTypeCount; ++i) {
        const auto dtype = static_cast<DType>(i);
        SCOPED_TRACE(name(dtype));
        const std::optional<Results> got = made(dtype);
        EXPECT_TRUE(got.has_value() || !is_floating(dtype)) << "refused";
        if (!got) continue;
        EXPECT_EQ(name(got->tensors.at(0).dtype()), name(dtype));
        if (samples.unspecified_values || samples.differs.contains(dtype)) continue;
        const std::optional<Results> want = made(is_floating(dtype) ? DType::kF64 : DType::kI64);
        if (!want) continue;
        EXPECT_EQ(difference(*got, in_dtypes(*want, {dtype}), tolerance(dtype)), "");
      }
    });
  });
}

}  // namespace
}  // namespace lockstep
