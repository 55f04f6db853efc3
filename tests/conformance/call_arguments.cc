#include "tests/conformance/call_arguments.h"

#include <algorithm>

#include "core/base/check.h"
#include "tests/conformance/elements.h"

namespace lockstep::conformance {

namespace {

using Kind = CaseValue::Kind;

/// Converts a one-element tensor to a number, for schemas that ask for a number.
CaseValue number_of(const CaseValue& value, const CaseFile& file) {
  if (value.kind != Kind::kTensor) return value;
  const Tensor tensor = file.tensor(value);
  LS_CHECK(tensor.numel() == 1, DataError, "a tensor of {} elements is no number", tensor.numel());
  CaseValue number;
  number.kind = is_floating(tensor.dtype()) ? Kind::kFloat : Kind::kInt;
  number.real = elements_as<double>(tensor)[0];
  number.integer = elements_as<int64_t>(tensor)[0];
  return number;
}

int64_t int_of(const CaseValue& value, const CaseFile& file) {
  const CaseValue number = number_of(value, file);
  LS_CHECK(number.kind == Kind::kInt || number.kind == Kind::kBool || value.kind == Kind::kTensor,
           DataError, "expected an integer");
  return number.integer;
}

double float_of(const CaseValue& value, const CaseFile& file) {
  const CaseValue number = number_of(value, file);
  if (number.kind == Kind::kFloat) return number.real;
  LS_CHECK(number.kind == Kind::kInt, DataError, "expected a number");
  return static_cast<double>(number.integer);
}

Scalar scalar_of(const CaseValue& value, const CaseFile& file) {
  const CaseValue number = number_of(value, file);
  if (number.kind == Kind::kFloat) return number.real;
  if (number.kind == Kind::kBool) return number.integer != 0;
  LS_CHECK(number.kind == Kind::kInt, DataError, "expected a number");
  return number.integer;
}

MemoryFormat memory_format_of(const std::string& name) {
  constexpr std::pair<std::string_view, MemoryFormat> kNames[] = {
      {"contiguous_format", MemoryFormat::kContiguous},
      {"preserve_format", MemoryFormat::kPreserve},
      {"channels_last", MemoryFormat::kChannelsLast},
      {"channels_last_3d", MemoryFormat::kChannelsLast3d}};
  for (const auto& [known, format] : kNames) {
    if (known == name) return format;
  }
  throw DataError("unknown memory format " + name);
}

DType dtype_of_name(const std::string& name) {
  const std::optional<DType> dtype = parse_dtype(name);
  LS_CHECK(dtype.has_value(), DataError, "unknown dtype {}", name);
  return *dtype;
}

/// Converts a number to a 0-d tensor of the weakest dtype of its kind, so that it promotes like the
/// number.
Tensor tensor_of(const CaseValue& value, const CaseFile& file) {
  if (value.kind == Kind::kTensor) return file.tensor(value);
  const Scalar scalar = scalar_of(value, file);
  const Tensor tensor = empty_tensor({}, scalar.is_floating() ? DType::kF32 : scalar.kind());
  set_elements(tensor, std::vector<double>{scalar.to_double()});
  return tensor;
}

Value list_value(const Argument& argument, const CaseValue& value, const CaseFile& file) {
  if (argument.type.base == BaseType::kTensor) {
    std::vector<Tensor> tensors;
    for (const CaseValue& item : value.list) {
      const bool absent = item.kind == Kind::kNull && argument.type.optional_element;
      tensors.push_back(absent ? Tensor() : file.tensor(item));
    }
    return Value(std::move(tensors));
  }
  if (argument.type.base == BaseType::kBool) {
    BoolList flags;
    for (const CaseValue& item : value.list) flags.push_back(int_of(item, file) != 0);
    return Value(flags);
  }
  if (argument.type.base == BaseType::kFloat) {
    std::vector<double> list;
    for (const CaseValue& item : value.list) list.push_back(float_of(item, file));
    return Value(DoubleList(std::span<const double>(list))).own();
  }
  LS_CHECK(argument.type.base == BaseType::kInt, DataError, "lists of {} cannot be passed",
           to_string(argument.type));
  Dims list;
  if (value.kind == Kind::kList) {
    for (const CaseValue& item : value.list) list.push_back(int_of(item, file));
  } else {  // a single number is repeated N times
    list.resize(static_cast<size_t>(std::max<int64_t>(argument.list_size, 1)), int_of(value, file));
  }
  return Value(IntList(list)).own();
}

void expect_kind(const CaseValue& value, Kind kind, const char* what) {
  LS_CHECK(value.kind == kind, DataError, "expected {}", what);
}

Value argument_value(const Argument& argument, const CaseValue& value, const CaseFile& file) {
  if (value.kind == Kind::kNull) {
    LS_CHECK(argument.type.optional, DataError, "null is not optional");
    return {};
  }
  if (argument.type.list) return list_value(argument, value, file);
  switch (argument.type.base) {
    case BaseType::kTensor:
      return tensor_of(value, file);
    case BaseType::kInt:
      return int_of(value, file);
    case BaseType::kFloat:
      return float_of(value, file);
    case BaseType::kScalar:
      return scalar_of(value, file);
    case BaseType::kBool:
      expect_kind(value, Kind::kBool, "a bool");
      return value.integer != 0;
    case BaseType::kStr:
      expect_kind(value, Kind::kString, "a string");
      return Value(std::string_view(value.text)).own();
    case BaseType::kDevice:
      expect_kind(value, Kind::kString, "a device's name");
      return parse_device(value.text);
    case BaseType::kDType:
      expect_kind(value, Kind::kDType, "a dtype");
      return dtype_of_name(value.text);
    case BaseType::kMemoryFormat:
      expect_kind(value, Kind::kMemoryFormat, "a memory format");
      return memory_format_of(value.text);
    default:
      throw DataError(fmt::format("values of type {} cannot be passed", to_string(argument.type)));
  }
}

int place_of(const Schema& schema, const std::string& keyword) {
  const int place = schema.find(keyword);
  LS_CHECK(place >= 0, DataError, "the operator has no argument {}: {}", keyword,
           schema.to_string());
  return place;
}

}  // namespace

std::vector<Value> call_arguments(const Schema& schema, const Case& one, const CaseFile& file) {
  std::vector<const CaseValue*> given(schema.arguments.size(), nullptr);
  LS_CHECK(one.arguments.size() <= given.size(), DataError,
           "{} arguments are more than the operator takes: {}", one.arguments.size(),
           schema.to_string());
  for (size_t i = 0; i < one.arguments.size(); ++i) given[i] = &one.arguments[i];
  for (const auto& [name, value] : one.keywords) given[place_of(schema, name)] = &value;

  std::vector<Value> values;
  for (size_t i = 0; i < given.size(); ++i) {
    const Argument& argument = schema.arguments[i];
    if (given[i] == nullptr) {
      LS_CHECK(argument.has_default, DataError, "argument {} is missing and has no default",
               argument.name);
      values.push_back(argument.default_value);
      continue;
    }
    try {
      values.push_back(argument_value(argument, *given[i], file));
    } catch (const DataError& error) {
      throw DataError(fmt::format("argument {} ({}): {}", argument.name, to_string(argument.type),
                                  error.what()));
    }
  }
  return values;
}

const Tensor& differentiated(const Schema& schema, const std::vector<Value>& arguments,
                             const ExpectedGradient& gradient) {
  const size_t place = gradient.keyword.empty()
                           ? gradient.argument
                           : static_cast<size_t>(place_of(schema, gradient.keyword));
  LS_CHECK(place < arguments.size(), DataError, "no argument {}", place);
  const Value& value = arguments[place];
  if (!gradient.element) return value.tensor();
  LS_CHECK(*gradient.element < value.tensors().size(), DataError, "argument {} has no element {}",
           place, *gradient.element);
  return value.tensors()[*gradient.element];
}

std::string gradient_name(const Schema& schema, const ExpectedGradient& gradient) {
  const std::string argument =
      gradient.keyword.empty() ? schema.arguments[gradient.argument].name : gradient.keyword;
  return gradient.element ? fmt::format("{}[{}]", argument, *gradient.element) : argument;
}

}  // namespace lockstep::conformance
