#include "profile/argument_record.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/tensor/tensor.h"

namespace lockstep::profile {

namespace {

enum class Tag : uint8_t { kOther, kTensor, kTensors, kInt, kDouble, kBool, kInts };

constexpr size_t kMostTensors = 16;
constexpr size_t kMostNumbers = 8;

/// Appends values, whole ones only.
class Writer {
 public:
  explicit Writer(std::span<char> into) : into_(into) {}

  template <class T>
  void add(const T& value) {
    append(&value, sizeof value);
  }
  void append(const void* from, size_t bytes) {
    full_ |= used_ + bytes > into_.size();
    if (full_) return;
    if (bytes != 0) std::memcpy(into_.data() + used_, from, bytes);  // nothing may be at null
    used_ += bytes;
  }
  bool full() const { return full_; }
  size_t used() const { return used_; }
  void cut(size_t used) { used_ = used; }

 private:
  std::span<char> into_;
  size_t used_ = 0;
  bool full_ = false;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T take() {
    T value{};
    const size_t bytes = std::min(sizeof value, bytes_.size());
    std::memcpy(&value, bytes_.data(), bytes);
    bytes_.remove_prefix(bytes);
    return value;
  }
  bool empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

void add_tensor(Writer& writer, const Tensor& tensor) {
  const bool defined = tensor.defined();
  const IntList sizes = defined ? tensor.sizes() : IntList();
  writer.add(static_cast<uint8_t>(defined ? static_cast<int>(tensor.dtype()) : kDTypeCount));
  writer.add(static_cast<uint8_t>(sizes.size()));
  writer.append(sizes.data(), sizes.size() * sizeof(int64_t));
}

void add_argument(Writer& writer, const Value& value) {
  using VTag = Value::Tag;
  const auto tag = [&](Tag t) { writer.add(t); };
  if (value.is_tensor()) {
    tag(Tag::kTensor);
    return add_tensor(writer, value.tensor());
  }
  if (value.is_tensor_list()) {
    const TensorList tensors = value.tensors();
    const size_t kept = std::min(tensors.size(), kMostTensors);
    tag(Tag::kTensors);
    writer.add(static_cast<uint8_t>(kept));
    for (size_t i = 0; i < kept; ++i) add_tensor(writer, tensors[i]);
    return;
  }
  switch (value.tag()) {
    case VTag::kInt:
      tag(Tag::kInt);
      return writer.add(value.to_int());
    case VTag::kBool:
      tag(Tag::kBool);
      return writer.add(value.to_bool());
    case VTag::kDouble:
      tag(Tag::kDouble);
      return writer.add(value.to_double());
    case VTag::kIntList:
    case VTag::kOwnedIntList: {
      const IntList numbers = value.to_int_list();
      const size_t kept = std::min(numbers.size(), kMostNumbers);
      tag(Tag::kInts);
      writer.add(static_cast<uint8_t>(kept));
      return writer.append(numbers.data(), kept * sizeof(int64_t));
    }
    default:
      return tag(Tag::kOther);
  }
}

std::vector<int64_t> take_numbers(Reader& reader, size_t count) {
  std::vector<int64_t> numbers(count);
  for (int64_t& number : numbers) number = reader.take<int64_t>();
  return numbers;
}

std::vector<int64_t> take_tensor(Reader& reader, std::string& type) {
  const auto dtype = reader.take<uint8_t>();
  if (dtype < kDTypeCount) type = trace_name(static_cast<DType>(dtype));
  return take_numbers(reader, reader.take<uint8_t>());
}

ArgumentInfo take_argument(Reader& reader) {
  ArgumentInfo info;
  switch (reader.take<Tag>()) {
    case Tag::kOther:
      break;
    case Tag::kTensor:
      info.sizes = take_tensor(reader, info.type);
      break;
    case Tag::kTensors: {
      const auto count = reader.take<uint8_t>();
      std::string element;
      for (size_t i = 0; i < count; ++i) {
        info.sizes_of_list.push_back(take_tensor(reader, element));
      }
      info.type = "TensorList";
      break;
    }
    case Tag::kInt:
      info.type = "Scalar";
      info.value = fmt::format("{}", reader.take<int64_t>());
      break;
    case Tag::kDouble:
      info.type = "Scalar";
      info.value = fmt::format("{}", reader.take<double>());
      break;
    case Tag::kBool:
      info.type = "Scalar";
      info.value = reader.take<bool>() ? "True" : "False";
      break;
    case Tag::kInts:
      info.type = "ScalarList";
      info.value =
          fmt::format("[{}]", fmt::join(take_numbers(reader, reader.take<uint8_t>()), ", "));
      break;
  }
  return info;
}

}  // namespace

size_t write_arguments(std::span<const Value> arguments, std::span<char> into) noexcept {
  Writer writer(into);
  for (const Value& argument : arguments) {
    const size_t before = writer.used();
    add_argument(writer, argument);
    if (writer.full()) {
      writer.cut(before);
      break;
    }
  }
  return writer.used();
}

std::vector<ArgumentInfo> read_arguments(std::string_view bytes) {
  std::vector<ArgumentInfo> arguments;
  Reader reader(bytes);
  while (!reader.empty()) arguments.push_back(take_argument(reader));
  return arguments;
}

std::string_view trace_name(DType dtype) {
  constexpr std::string_view kNames[kDTypeCount] = {
      "bool",     "unsigned char", "signed char",   "short", "int",
      "long int", "c10::Half",     "c10::BFloat16", "float", "double"};
  return kNames[static_cast<int>(dtype)];
}

}  // namespace lockstep::profile
