#include "bindings.h"

namespace lockstep::python {
namespace {

bool is_integer(nb::handle object) {
  return !PyBool_Check(object.ptr()) && PyIndex_Check(object.ptr()) != 0;
}

/// Python's numbers and NumPy's, but no arrays.
bool is_number(nb::handle object) {
  if (PyBool_Check(object.ptr()) || PyFloat_Check(object.ptr()) || is_integer(object)) return true;
  return nb::hasattr(object, "__float__") && !nb::hasattr(object, "__len__");
}

int64_t integer_from(nb::handle object) {
  nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid()) nb::raise_python_error();
  const long long value = PyLong_AsLongLong(index.ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return value;
}

double real_from(nb::handle object) {
  const double value = PyFloat_AsDouble(object.ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return value;
}

Scalar scalar_from(nb::handle object) {
  if (PyBool_Check(object.ptr())) return object.is(nb::handle(Py_True));
  return is_integer(object) ? Scalar(integer_from(object)) : Scalar(real_from(object));
}

/// The last word of what the object is called: "float32" of "float32", torch.float32,
/// numpy.float32.
std::string last_word(nb::handle object) {
  std::string text = nb::str(object).c_str();
  while (!text.empty() && (text.back() == '>' || text.back() == '\'')) text.pop_back();
  return text.substr(text.find_last_of(".'") + 1);
}

std::optional<Value> memory_format_from(nb::handle object) {
  const std::string word = last_word(object);
  for (const MemoryFormat format : {MemoryFormat::kContiguous, MemoryFormat::kPreserve,
                                    MemoryFormat::kChannelsLast, MemoryFormat::kChannelsLast3d}) {
    if (word == name(format)) return format;
  }
  return std::nullopt;
}

std::optional<Value> one_from(BaseType type, nb::handle object, Kept& kept) {
  const bool is_text = nb::isinstance<nb::str>(object);
  switch (type) {
    case BaseType::kTensor: {
      std::optional<Tensor> tensor = tensor_from_object(object);
      if (!tensor) return std::nullopt;
      return kept.tensors.emplace_back(object, std::move(*tensor)).second;
    }
    case BaseType::kScalar:
      if (!is_number(object)) return std::nullopt;
      return scalar_from(object);
    case BaseType::kInt:
      if (!is_integer(object)) return std::nullopt;
      return integer_from(object);
    case BaseType::kFloat:
      if (!is_number(object) || PyBool_Check(object.ptr())) return std::nullopt;
      return real_from(object);
    case BaseType::kBool:
      if (!PyBool_Check(object.ptr())) return std::nullopt;
      return object.is(nb::handle(Py_True));
    case BaseType::kStr:
      if (!is_text) return std::nullopt;
      return std::string_view(kept.texts.emplace_back(nb::str(object).c_str()));
    case BaseType::kDType: {
      const std::optional<DType> dtype = parse_dtype(last_word(object));
      if (!dtype) return std::nullopt;
      return *dtype;
    }
    case BaseType::kDevice:
      if (!is_text) return std::nullopt;
      return parse_device(nb::str(object).c_str());
    case BaseType::kMemoryFormat:
      return memory_format_from(object);
    case BaseType::kLayout:
      return Layout::kStrided;
    case BaseType::kGenerator:
      return std::nullopt;
  }
  return std::nullopt;
}

/// The elements of a list or tuple, each converted by `convert`; false if one cannot be.
template <class Convert>
bool each_element(nb::handle object, const Convert& convert) {
  if (!nb::isinstance<nb::list>(object) && !nb::isinstance<nb::tuple>(object)) return false;
  for (const nb::handle element : object) {
    if (!convert(element)) return false;
  }
  return true;
}

std::optional<Value> list_from(const Type& type, nb::handle object, Kept& kept) {
  switch (type.base) {
    case BaseType::kTensor: {
      std::vector<Tensor>& list = kept.tensor_lists.emplace_back();
      const bool fits = each_element(object, [&](nb::handle element) {
        const bool absent = type.optional_element && element.is_none();
        std::optional<Tensor> tensor = absent ? Tensor() : tensor_from_object(element);
        if (tensor) list.push_back(std::move(*tensor));
        return tensor.has_value();
      });
      if (!fits) return std::nullopt;
      return TensorList(list);
    }
    case BaseType::kInt: {
      if (is_integer(object)) return integer_from(object);
      std::vector<int64_t>& list = kept.integers.emplace_back();
      const bool fits = each_element(object, [&](nb::handle element) {
        if (is_integer(element)) list.push_back(integer_from(element));
        return is_integer(element);
      });
      if (!fits) return std::nullopt;
      return IntList(list);
    }
    case BaseType::kFloat: {
      std::vector<double>& list = kept.numbers.emplace_back();
      const bool fits = each_element(object, [&](nb::handle element) {
        if (is_number(element)) list.push_back(real_from(element));
        return is_number(element);
      });
      if (!fits) return std::nullopt;
      return DoubleList(list);
    }
    case BaseType::kBool: {
      BoolList list;
      const bool fits = each_element(object, [&](nb::handle element) {
        const bool is_flag = PyBool_Check(element.ptr()) && list.size() < 32;
        if (is_flag) list.push_back(element.is(nb::handle(Py_True)));
        return is_flag;
      });
      if (!fits) return std::nullopt;
      return list;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Value> value_from(const Argument& argument, nb::handle object, Kept& kept) {
  if (object.is_none()) {
    if (!argument.type.optional) return std::nullopt;
    return Value();
  }
  return argument.type.list ? list_from(argument.type, object, kept)
                            : one_from(argument.type.base, object, kept);
}

nb::object object_from(Tensor tensor) {
  return tensor.defined() ? nb::cast(std::move(tensor)) : nb::none();
}

nb::object object_from(Value& value, const Kept& kept) {
  switch (value.tag()) {
    case Value::Tag::kTensor:
    case Value::Tag::kTensorRef: {
      Tensor tensor = value.take_tensor();
      for (const auto& [object, argument] : kept.tensors) {
        if (argument.is_same(tensor)) return nb::borrow(object);
      }
      return object_from(std::move(tensor));
    }
    case Value::Tag::kTensorList:
    case Value::Tag::kTensorVector: {
      nb::list list;
      for (const Tensor& tensor : value.tensors()) list.append(object_from(tensor));
      return list;
    }
    case Value::Tag::kInt:
      return nb::int_(value.to_int());
    case Value::Tag::kDouble:
      return nb::float_(value.to_double());
    case Value::Tag::kBool:
      return nb::bool_(value.to_bool());
    case Value::Tag::kScalar: {
      const Scalar scalar = value.to_scalar();
      if (scalar.kind() == DType::kBool) return nb::bool_(scalar.to_bool());
      if (scalar.is_floating()) return nb::float_(scalar.to_double());
      return nb::int_(scalar.to_int());
    }
    case Value::Tag::kNone:
      return nb::none();
    default:
      return nb::str(value.to_string().c_str());
  }
}

}  // namespace lockstep::python
