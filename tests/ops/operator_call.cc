#include "tests/ops/operator_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/check.h"
#include "core/tensor/generator.h"
#include "tests/conformance/elements.h"

namespace lockstep {

namespace {

Tensor number(const Scalar& value) {
  const Tensor tensor = empty_tensor({}, value.kind());
  set_elements(tensor, std::vector<double>{value.to_double()});
  return tensor;
}

void append(std::vector<Tensor>& tensors, const Value& value) {
  if (value.is_tensor_list()) {
    for (const Tensor& tensor : value.tensors()) tensors.push_back(tensor);
  } else if (value.is_tensor()) {
    tensors.push_back(value.tensor());
  } else {
    tensors.push_back(value.is_none() ? Tensor() : number(value.to_scalar()));
  }
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

bool close(double got, double want, double tolerance) {
  if (same_bits(got, want) || (std::isnan(got) && std::isnan(want))) return true;
  return std::abs(got - want) <= tolerance * (1 + std::abs(want));
}

/// Half and BFloat16 widen exactly, so comparing doubles compares the bits of every floating dtype.
std::string element_difference(const Tensor& got, const Tensor& want, double tolerance) {
  if (!is_floating(got.dtype())) {
    return elements_as<int64_t>(got) == elements_as<int64_t>(want) ? "" : "elements differ";
  }
  const std::vector<double> have = elements_as<double>(got);
  const std::vector<double> expected = elements_as<double>(want);
  for (size_t i = 0; i < have.size(); ++i) {
    const bool equal =
        tolerance == 0 ? same_bits(have[i], expected[i]) : close(have[i], expected[i], tolerance);
    if (!equal) return fmt::format("element {}: expected {}, got {}", i, expected[i], have[i]);
  }
  return "";
}

}  // namespace

Arguments arguments_of(const Operator& op, const Sample& sample) {
  const Schema& schema = op.schema();
  LS_CHECK(sample.arguments.size() <= schema.arguments.size(), InternalError,
           "sample \"{}\" has more arguments than {}", sample.what, schema.to_string());
  Arguments arguments = sample.arguments;
  for (size_t i = arguments.size(); i < schema.arguments.size(); ++i) {
    arguments.push_back(schema.arguments[i].default_value);
  }
  for (const auto& [name, value] : sample.named) {
    const int place = schema.find(name);
    LS_CHECK(place >= 0, InternalError, "sample \"{}\" names {}, which {} has not", sample.what,
             name, schema.to_string());
    arguments[static_cast<size_t>(place)] = value;
  }
  return map_tensors(arguments, [](const Tensor& t) { return cast_copy(t, t.dtype()); });
}

Tensor cast_copy(const Tensor& tensor, DType dtype) {
  const Tensor copy = empty_strided_tensor(tensor.sizes(), tensor.strides(), dtype);
  if (is_floating(tensor.dtype())) {
    set_elements(copy, elements_as<double>(tensor));
  } else {
    set_elements(copy, elements_as<int64_t>(tensor));
  }
  return copy;
}

Tensor on_meta(const Tensor& tensor) {
  return empty_strided_tensor(tensor.sizes(), tensor.strides(), tensor.dtype(), kMeta);
}

Results call_operator(const Operator& op, Arguments& arguments) {
  manual_seed(7);
  Stack stack(arguments);
  op.call_boxed(stack);
  Results results;
  for (const Value& value : stack.results()) append(results.tensors, value);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (op.schema().arguments[i].written) append(results.tensors, arguments[i]);
  }
  return results;
}

std::string difference(const Results& got, const Results& want, double tolerance) {
  if (got.tensors.size() != want.tensors.size()) return "another number of results";
  for (size_t i = 0; i < got.tensors.size(); ++i) {
    const Tensor& have = got.tensors[i];
    const Tensor& expected = want.tensors[i];
    std::string what;
    if (have.defined() != expected.defined()) {
      what = have.defined() ? "expected nothing" : "expected a tensor";
    } else if (!have.defined()) {
      continue;
    } else if (!same(have.sizes(), expected.sizes()) || have.dtype() != expected.dtype()) {
      what = fmt::format("expected {}, got {}", to_string(expected), to_string(have));
    } else {
      what = element_difference(have, expected, tolerance);
    }
    if (!what.empty()) return fmt::format("result {}: {}", i, what);
  }
  return "";
}

std::vector<const Operator*> functional_operators() {
  std::vector<const Operator*> found;
  for (const Operator* op : dispatcher().operators()) {
    if (op->form() == OpForm::kFunctional) found.push_back(op);
  }
  std::sort(found.begin(), found.end(),
            [](const Operator* a, const Operator* b) { return a->name() < b->name(); });
  return found;
}

void for_each_operator(const std::function<void(const Operator&, const OpSamples&)>& body) {
  for (const Operator* op : functional_operators()) {
    const auto samples = op_samples().find(op->name());
    if (samples == op_samples().end()) continue;  // registration_test.cc reports this
    SCOPED_TRACE(op->name());
    body(*op, samples->second);
  }
}

void for_each_sample(std::span<const Sample> samples,
                     const std::function<void(const Sample&)>& body) {
  for (const Sample& sample : samples) {
    SCOPED_TRACE(sample.what);
    try {
      body(sample);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "threw: " << error.what();
    }
  }
}

}  // namespace lockstep
