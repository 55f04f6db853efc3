#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

class Generator;

/// One argument or result of an operator in boxed form: a tag and sixteen bytes.
///
/// Arguments are borrowed: a Value made from a tensor, a list or a string refers to it, costs no
/// reference count and no heap call, and must not outlive it. Results own their tensors. `own()`
/// turns a borrowed Value into one that may be kept.
class Value {
 public:
  enum class Tag : uint8_t {
    kNone,
    kTensor,        ///< owned
    kTensorRef,     ///< borrowed
    kTensorList,    ///< borrowed
    kTensorVector,  ///< owned
    kInt,
    kDouble,
    kBool,
    kScalar,
    kIntList,  ///< borrowed
    kOwnedIntList,
    kString,  ///< borrowed
    kOwnedString,
    kDType,
    kDevice,
    kLayout,
    kMemoryFormat,
    kGenerator,
    kBoolList,
    kDoubleList,  ///< borrowed
    kOwnedDoubleList,
  };

  Value() noexcept : tag_(Tag::kNone) {}
  Value(std::nullopt_t) noexcept : Value() {}
  Value(Tensor&& tensor) noexcept;               ///< owned
  Value(const Tensor& tensor) noexcept;          ///< borrowed
  Value(const OptionalTensor& tensor) noexcept;  ///< borrowed
  Value(TensorList list) noexcept;               ///< borrowed
  Value(std::vector<Tensor>&& list);             ///< owned
  Value(int64_t value) noexcept : tag_(Tag::kInt) { payload_.integer = value; }
  template <std::integral T>
  requires(!std::is_same_v<T, bool> && !std::is_same_v<T, int64_t>) Value(T value)
  noexcept : Value(static_cast<int64_t>(value)) {}
  Value(double value) noexcept : tag_(Tag::kDouble) { payload_.real = value; }
  Value(bool value) noexcept : tag_(Tag::kBool) { payload_.integer = value ? 1 : 0; }
  Value(Scalar value) noexcept : tag_(Tag::kScalar) { payload_.scalar = value; }
  Value(IntList list) noexcept : tag_(Tag::kIntList) { payload_.list = {list.data(), list.size()}; }
  Value(DoubleList list) noexcept : tag_(Tag::kDoubleList) {
    payload_.list = {list.data(), list.size()};
  }
  Value(std::string_view s) noexcept : tag_(Tag::kString) { payload_.list = {s.data(), s.size()}; }
  Value(const char* s) noexcept : Value(std::string_view(s)) {}  // else it would convert to bool
  Value(DType dtype) noexcept : tag_(Tag::kDType) { payload_.integer = static_cast<int>(dtype); }
  Value(Device device) noexcept : tag_(Tag::kDevice) { payload_.device = device; }
  Value(Layout layout) noexcept : tag_(Tag::kLayout) {
    payload_.integer = static_cast<int>(layout);
  }
  Value(MemoryFormat f) noexcept : tag_(Tag::kMemoryFormat) {
    payload_.integer = static_cast<int>(f);
  }
  Value(BoolList list) noexcept : tag_(Tag::kBoolList) { payload_.flags = list; }
  Value(Generator* generator) noexcept : tag_(generator != nullptr ? Tag::kGenerator : Tag::kNone) {
    payload_.pointer = generator;
  }
  template <class T>
  Value(const std::optional<T>& value) noexcept : Value() {
    if (value) *this = Value(*value);
  }
  Value(const Value& other);
  Value(Value&& other) noexcept : tag_(other.tag_), payload_(other.payload_) {
    other.tag_ = Tag::kNone;
  }
  Value& operator=(Value other) noexcept {
    std::swap(tag_, other.tag_);
    std::swap(payload_, other.payload_);
    return *this;
  }
  ~Value() {
    if (owns()) drop();
  }

  Tag tag() const noexcept { return tag_; }
  bool is_none() const noexcept { return tag_ == Tag::kNone; }
  bool is_tensor() const noexcept { return tag_ == Tag::kTensor || tag_ == Tag::kTensorRef; }
  bool is_tensor_list() const noexcept {
    return tag_ == Tag::kTensorList || tag_ == Tag::kTensorVector;
  }

  /// The tensor inside; valid while this Value (or, when borrowed, its source) lives.
  const Tensor& tensor() const;
  TensorList tensors() const;
  /// Moves an owned tensor out; copies a borrowed one.
  Tensor take_tensor();
  std::vector<Tensor> take_tensors();
  int64_t to_int() const;
  double to_double() const;
  bool to_bool() const;
  Scalar to_scalar() const;
  IntList to_int_list() const;
  DoubleList to_double_list() const;
  std::string_view to_string_view() const;
  DType to_dtype() const;
  Device to_device() const;
  MemoryFormat to_memory_format() const;
  Generator* to_generator() const;
  BoolList to_bool_list() const;

  /// Returns a copy that owns its contents.
  Value own() const;
  /// As printed in calls: "float32[2, 3]", "1.5", "[0, 1]", "None".
  std::string to_string() const;

 private:
  bool owns() const noexcept {
    return tag_ == Tag::kTensor || tag_ == Tag::kTensorVector || tag_ == Tag::kOwnedIntList ||
           tag_ == Tag::kOwnedDoubleList || tag_ == Tag::kOwnedString;
  }
  void drop() noexcept;
  [[noreturn]] void wrong_tag(const char* wanted) const;

  union Payload {
    int64_t integer;
    double real;
    Scalar scalar;
    Device device;
    BoolList flags;
    void* pointer;
    const Tensor* tensor;
    struct {
      const void* data;
      size_t size;
    } list;
    alignas(Tensor) std::byte owned_tensor[sizeof(Tensor)];
    Payload() noexcept : integer(0) {}
  };

  Tag tag_;
  Payload payload_;
};

/// Arguments and results of one boxed call.
class Stack {
 public:
  explicit Stack(std::span<Value> arguments) : arguments_(arguments) {}

  std::span<Value> arguments() const { return arguments_; }
  SmallVector<Value, 4>& results() { return results_; }
  const SmallVector<Value, 4>& results() const { return results_; }

 private:
  std::span<Value> arguments_;
  SmallVector<Value, 4> results_;
};

// Converts a Value to the C++ argument type T of an operator's signature.
template <class T>
struct FromValue;
#define LS_FROM_VALUE(T, expression)                                     \
  template <>                                                            \
  struct FromValue<T> {                                                  \
    static T get([[maybe_unused]] const Value& v) { return expression; } \
  }
LS_FROM_VALUE(const Tensor&, v.tensor());
LS_FROM_VALUE(OptionalTensor, v.is_none() ? OptionalTensor() : OptionalTensor(v.tensor()));
LS_FROM_VALUE(TensorList, v.tensors());
LS_FROM_VALUE(MutableTensorList, MutableTensorList(v.tensors()));
LS_FROM_VALUE(OptionalTensorList, OptionalTensorList(v.tensors()));
LS_FROM_VALUE(int64_t, v.to_int());
LS_FROM_VALUE(double, v.to_double());
LS_FROM_VALUE(bool, v.to_bool());
LS_FROM_VALUE(Scalar, v.to_scalar());
LS_FROM_VALUE(IntList, v.to_int_list());
LS_FROM_VALUE(DoubleList, v.to_double_list());
LS_FROM_VALUE(std::string_view, v.to_string_view());
LS_FROM_VALUE(DType, v.to_dtype());
LS_FROM_VALUE(Device, v.to_device());
LS_FROM_VALUE(Layout, Layout::kStrided);
LS_FROM_VALUE(MemoryFormat, v.to_memory_format());
LS_FROM_VALUE(BoolList, v.to_bool_list());
LS_FROM_VALUE(Generator*, v.is_none() ? nullptr : v.to_generator());
#undef LS_FROM_VALUE
template <class T>
struct FromValue<std::optional<T>> {
  static std::optional<T> get(const Value& v) {
    if (v.is_none()) return std::nullopt;
    return FromValue<T>::get(v);
  }
};

}  // namespace lockstep
