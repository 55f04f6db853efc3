#include "core/dispatch/value.h"

#include <cstring>
#include <new>

#include "core/base/check.h"

namespace lockstep {

namespace {

Tensor& tensor_in(std::byte* bytes) { return *std::launder(reinterpret_cast<Tensor*>(bytes)); }
const Tensor& tensor_in(const std::byte* bytes) {
  return *std::launder(reinterpret_cast<const Tensor*>(bytes));
}

constexpr const char* kTagNames[] = {
    "None",   "Tensor", "Tensor",       "Tensor[]",  "Tensor[]", "int",     "float",
    "bool",   "Scalar", "int[]",        "int[]",     "str",      "str",     "dtype",
    "Device", "Layout", "MemoryFormat", "Generator", "bool[]",   "float[]", "float[]"};

}  // namespace

Value::Value(Tensor&& tensor) noexcept : tag_(Tag::kTensor) {
  ::new (payload_.owned_tensor) Tensor(std::move(tensor));
}

Value::Value(const Tensor& tensor) noexcept : tag_(Tag::kTensorRef) { payload_.tensor = &tensor; }

Value::Value(const OptionalTensor& tensor) noexcept : Value() {
  if (!tensor) return;
  tag_ = Tag::kTensorRef;
  payload_.tensor = &*tensor;
}

Value::Value(TensorList list) noexcept : tag_(Tag::kTensorList) {
  payload_.list = {list.data(), list.size()};
}

Value::Value(std::vector<Tensor>&& list) : tag_(Tag::kTensorVector) {
  payload_.pointer = new std::vector<Tensor>(std::move(list));
}

Value::Value(const Value& other) : Value() {
  if (!other.owns()) {
    tag_ = other.tag_;
    payload_ = other.payload_;
  } else {
    *this = other.own();
  }
}

void Value::drop() noexcept {
  switch (tag_) {
    case Tag::kTensor:
      tensor_in(payload_.owned_tensor).~Tensor();
      break;
    case Tag::kTensorVector:
      delete static_cast<std::vector<Tensor>*>(payload_.pointer);
      break;
    case Tag::kOwnedIntList:
      delete static_cast<Dims*>(payload_.pointer);
      break;
    case Tag::kOwnedDoubleList:
      delete static_cast<std::vector<double>*>(payload_.pointer);
      break;
    case Tag::kOwnedString:
      delete static_cast<std::string*>(payload_.pointer);
      break;
    default:
      break;
  }
}

void Value::wrong_tag(const char* wanted) const {
  throw DispatchError(fmt::format("[value] wrong argument type: expected {}, got {}.", wanted,
                                  kTagNames[static_cast<int>(tag_)]));
}

const Tensor& Value::tensor() const {
  if (tag_ == Tag::kTensorRef) return *payload_.tensor;
  if (tag_ != Tag::kTensor) wrong_tag("Tensor");
  return tensor_in(payload_.owned_tensor);
}

TensorList Value::tensors() const {
  if (tag_ == Tag::kTensorList) {
    return {static_cast<const Tensor*>(payload_.list.data), payload_.list.size};
  }
  if (tag_ != Tag::kTensorVector) wrong_tag("Tensor[]");
  return *static_cast<const std::vector<Tensor>*>(payload_.pointer);
}

Tensor Value::take_tensor() {
  if (tag_ == Tag::kNone) return Tensor();
  if (tag_ == Tag::kTensor) return std::move(tensor_in(payload_.owned_tensor));
  return tensor();
}

std::vector<Tensor> Value::take_tensors() {
  if (tag_ == Tag::kTensorVector) {
    return std::move(*static_cast<std::vector<Tensor>*>(payload_.pointer));
  }
  const TensorList list = tensors();
  return {list.begin(), list.end()};
}

int64_t Value::to_int() const {
  if (tag_ == Tag::kScalar && !payload_.scalar.is_floating()) return payload_.scalar.to_int();
  if (tag_ != Tag::kInt && tag_ != Tag::kBool) wrong_tag("int");
  return payload_.integer;
}

double Value::to_double() const {
  if (tag_ == Tag::kDouble) return payload_.real;
  if (tag_ == Tag::kScalar) return payload_.scalar.to_double();
  if (tag_ != Tag::kInt) wrong_tag("float");
  return static_cast<double>(payload_.integer);
}

bool Value::to_bool() const {
  if (tag_ == Tag::kScalar) return payload_.scalar.to_bool();
  if (tag_ != Tag::kBool && tag_ != Tag::kInt) wrong_tag("bool");
  return payload_.integer != 0;
}

Scalar Value::to_scalar() const {
  switch (tag_) {
    case Tag::kScalar:
      return payload_.scalar;
    case Tag::kInt:
      return payload_.integer;
    case Tag::kDouble:
      return payload_.real;
    case Tag::kBool:
      return payload_.integer != 0;
    default:
      wrong_tag("Scalar");
  }
}

IntList Value::to_int_list() const {
  if (tag_ == Tag::kOwnedIntList) return *static_cast<const Dims*>(payload_.pointer);
  if (tag_ != Tag::kIntList) wrong_tag("int[]");
  return std::span(static_cast<const int64_t*>(payload_.list.data), payload_.list.size);
}

DoubleList Value::to_double_list() const {
  if (tag_ == Tag::kOwnedDoubleList)
    return *static_cast<const std::vector<double>*>(payload_.pointer);
  if (tag_ != Tag::kDoubleList) wrong_tag("float[]");
  return std::span(static_cast<const double*>(payload_.list.data), payload_.list.size);
}

std::string_view Value::to_string_view() const {
  if (tag_ == Tag::kOwnedString) return *static_cast<const std::string*>(payload_.pointer);
  if (tag_ != Tag::kString) wrong_tag("str");
  return {static_cast<const char*>(payload_.list.data), payload_.list.size};
}

DType Value::to_dtype() const {
  if (tag_ != Tag::kDType) wrong_tag("dtype");
  return static_cast<DType>(payload_.integer);
}

Device Value::to_device() const {
  if (tag_ != Tag::kDevice) wrong_tag("Device");
  return payload_.device;
}

MemoryFormat Value::to_memory_format() const {
  if (tag_ != Tag::kMemoryFormat) wrong_tag("MemoryFormat");
  return static_cast<MemoryFormat>(payload_.integer);
}

Generator* Value::to_generator() const {
  if (tag_ != Tag::kGenerator) wrong_tag("Generator");
  return static_cast<Generator*>(payload_.pointer);
}

BoolList Value::to_bool_list() const {
  if (tag_ != Tag::kBoolList) wrong_tag("bool[]");
  return payload_.flags;
}

Value Value::own() const {
  Value kept;
  switch (tag_) {
    case Tag::kTensor:
    case Tag::kTensorRef:
      return Value(Tensor(tensor()));
    case Tag::kTensorList:
    case Tag::kTensorVector:
      return Value(std::vector<Tensor>(tensors().begin(), tensors().end()));
    case Tag::kIntList:
    case Tag::kOwnedIntList:
      kept.payload_.pointer = new Dims(to_dims(to_int_list()));
      kept.tag_ = Tag::kOwnedIntList;
      return kept;
    case Tag::kDoubleList:
    case Tag::kOwnedDoubleList:
      kept.payload_.pointer =
          new std::vector<double>(to_double_list().begin(), to_double_list().end());
      kept.tag_ = Tag::kOwnedDoubleList;
      return kept;
    case Tag::kString:
    case Tag::kOwnedString:
      kept.payload_.pointer = new std::string(to_string_view());
      kept.tag_ = Tag::kOwnedString;
      return kept;
    default:
      return *this;
  }
}

std::string Value::to_string() const {
  switch (tag_) {
    case Tag::kNone:
      return "None";
    case Tag::kTensor:
    case Tag::kTensorRef:
      return lockstep::to_string(tensor());
    case Tag::kTensorList:
    case Tag::kTensorVector: {
      std::string text = "[";
      for (const Tensor& t : tensors())
        text += (text.size() > 1 ? ", " : "") + lockstep::to_string(t);
      return text + "]";
    }
    case Tag::kInt:
      return fmt::format("{}", payload_.integer);
    case Tag::kDouble:
      return fmt::format("{}", payload_.real);
    case Tag::kBool:
      return payload_.integer != 0 ? "True" : "False";
    case Tag::kScalar:
      return lockstep::to_string(payload_.scalar);
    case Tag::kIntList:
    case Tag::kOwnedIntList:
      return lockstep::to_string(to_int_list());
    case Tag::kDoubleList:
    case Tag::kOwnedDoubleList:
      return fmt::format("[{}]", fmt::join(to_double_list(), ", "));
    case Tag::kString:
    case Tag::kOwnedString:
      return fmt::format("\"{}\"", to_string_view());
    case Tag::kDType:
      return lockstep::to_string(to_dtype());
    case Tag::kDevice:
      return lockstep::to_string(payload_.device);
    case Tag::kLayout:
      return "strided";
    case Tag::kMemoryFormat:
      return std::string(name(to_memory_format()));
    case Tag::kGenerator:
      return "Generator";
    case Tag::kBoolList: {
      std::string text = "[";
      for (size_t i = 0; i < payload_.flags.size(); ++i) {
        text += fmt::format("{}{}", i == 0 ? "" : ", ", payload_.flags[i] ? "True" : "False");
      }
      return text + "]";
    }
  }
  return "?";
}

}  // namespace lockstep
