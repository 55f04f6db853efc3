#include "core/dispatch/call_op.h"

#include "core/base/check.h"
#include "core/base/nearest.h"

namespace lockstep {

namespace {

using Tag = Value::Tag;

bool is_number(Tag tag) {
  return tag == Tag::kInt || tag == Tag::kDouble || tag == Tag::kBool || tag == Tag::kScalar;
}

/// An int, or a Scalar that is one.
bool is_integer(const Value& value) {
  return value.tag() == Tag::kInt ||
         (value.tag() == Tag::kScalar && !value.to_scalar().is_floating());
}

bool fits_list(BaseType base, const Value& value) {
  switch (base) {
    case BaseType::kTensor:
      return value.is_tensor_list();
    case BaseType::kInt:
      return value.tag() == Tag::kIntList || value.tag() == Tag::kOwnedIntList;
    case BaseType::kFloat:
      return value.tag() == Tag::kDoubleList || value.tag() == Tag::kOwnedDoubleList;
    case BaseType::kBool:
      return value.tag() == Tag::kBoolList;
    default:
      return false;
  }
}

bool fits_one(BaseType base, const Value& value) {
  const Tag tag = value.tag();
  switch (base) {
    case BaseType::kTensor:
      return value.is_tensor() && value.tensor().defined();
    case BaseType::kScalar:
      return is_number(tag);
    case BaseType::kInt:
      return is_integer(value);
    case BaseType::kFloat:
      return is_number(tag) && tag != Tag::kBool;
    case BaseType::kBool:
      return tag == Tag::kBool || (tag == Tag::kScalar && value.to_scalar().kind() == DType::kBool);
    case BaseType::kStr:
      return tag == Tag::kString || tag == Tag::kOwnedString;
    case BaseType::kDType:
      return tag == Tag::kDType;
    case BaseType::kDevice:
      return tag == Tag::kDevice;
    case BaseType::kLayout:
      return tag == Tag::kLayout;
    case BaseType::kMemoryFormat:
      return tag == Tag::kMemoryFormat;
    case BaseType::kGenerator:
      return tag == Tag::kGenerator;
  }
  return false;
}

bool is_absent(const Value& value) {
  return value.is_none() || (value.is_tensor() && !value.tensor().defined());
}

std::string spelled(const Argument& argument) {
  std::string type = to_string(argument.type);
  if (argument.list_size != 0) type.insert(type.find(']'), std::to_string(argument.list_size));
  return type;
}

/// Converts `value` to the argument's type: an integer is repeated for `int[N]`. Throws
/// DispatchError if the type does not match.
Value fit(const Operator& op, const Argument& argument, const Value& value) {
  const Type& type = argument.type;
  if (is_absent(value) && type.optional) return {};
  if (type.list && type.base == BaseType::kInt && argument.list_size > 0 && is_integer(value)) {
    const Dims repeated(static_cast<size_t>(argument.list_size), value.to_int());
    return Value(IntList(repeated)).own();
  }
  LS_CHECK(fits(type, value), DispatchError,
           "[{}] argument {} has the wrong type: expected {}, got {}. {}", op.name(), argument.name,
           spelled(argument), is_absent(value) ? "nothing" : value.to_string(),
           op.schema().to_string());
  return value;
}

size_t place_of(const Operator& op, std::string_view name) {
  const Schema& schema = op.schema();
  const int place = schema.find(name);
  if (place >= 0) return static_cast<size_t>(place);
  std::vector<std::string_view> known;
  for (const Argument& argument : schema.arguments) known.push_back(argument.name);
  const auto close = nearest(name, known);
  throw DispatchError(fmt::format("[{}] there is no argument \"{}\".{} {}", op.name(), name,
                                  close ? fmt::format(" Did you mean \"{}\"?", *close) : "",
                                  schema.to_string()));
}

Tensor tensor_of(const Operator& op, Value& value) {
  LS_CHECK(value.is_none() || value.is_tensor(), DispatchError,
           "[{}] the result is no tensor: {}. Use call_values.", op.name(), value.to_string());
  return value.take_tensor();
}

}  // namespace

bool fits(const Type& type, const Value& value) {
  if (type.optional && is_absent(value)) return true;
  return type.list ? fits_list(type.base, value) : fits_one(type.base, value);
}

std::vector<Value> bind_arguments(const Operator& op, std::span<const Value> positional,
                                  std::span<const NamedValue> named) {
  const Schema& schema = op.schema();
  const size_t count = schema.arguments.size();
  LS_CHECK(positional.size() <= count, DispatchError,
           "[{}] too many arguments: expected at most {}, got {}. {}", op.name(), count,
           positional.size(), schema.to_string());
  std::vector<Value> bound(count);
  std::vector<bool> given(count);
  for (size_t i = 0; i < positional.size(); ++i) {
    bound[i] = fit(op, schema.arguments[i], positional[i]);
    given[i] = true;
  }
  for (const NamedValue& each : named) {
    const size_t i = place_of(op, each.name);
    LS_CHECK(!given[i], DispatchError, "[{}] argument {} is given twice. {}", op.name(), each.name,
             schema.to_string());
    bound[i] = fit(op, schema.arguments[i], each.value);
    given[i] = true;
  }
  for (size_t i = 0; i < count; ++i) {
    if (given[i]) continue;
    const Argument& argument = schema.arguments[i];
    LS_CHECK(argument.has_default || argument.type.optional, DispatchError,
             "[{}] argument {} is missing: expected {}, got nothing. {}", op.name(), argument.name,
             spelled(argument), schema.to_string());
    bound[i] = argument.default_value;
  }
  return bound;
}

std::vector<Value> call_values(const Operator& op, std::span<const Value> positional,
                               std::span<const NamedValue> named) {
  std::vector<Value> arguments = bind_arguments(op, positional, named);
  Stack stack(arguments);
  op.call_boxed(stack);
  std::vector<Value> results;
  for (const Value& result : stack.results()) results.push_back(result.own());
  return results;
}

Tensor call_op(std::string_view name, std::initializer_list<Value> positional,
               std::initializer_list<NamedValue> named) {
  const Operator& op = dispatcher().find(name);
  std::vector<Value> results = call_values(op, positional, named);
  LS_CHECK(results.size() == 1, DispatchError,
           "[{}] the operator has {} results: expected one. Use call_op_tensors.", op.name(),
           results.size());
  return tensor_of(op, results[0]);
}

std::vector<Tensor> call_op_tensors(std::string_view name, std::initializer_list<Value> positional,
                                    std::initializer_list<NamedValue> named) {
  const Operator& op = dispatcher().find(name);
  std::vector<Tensor> tensors;
  for (Value& result : call_values(op, positional, named)) {
    if (result.is_tensor_list()) {
      for (const Tensor& tensor : result.tensors()) tensors.push_back(tensor);
    } else {
      tensors.push_back(tensor_of(op, result));
    }
  }
  return tensors;
}

}  // namespace lockstep
