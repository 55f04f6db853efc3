#include "train/weights/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "core/base/check.h"
#include "train/weights/name_index.h"

namespace lockstep::train {
namespace {

struct Code {
  std::string_view text;
  DType dtype;
};

// In the order of the format's list, by rising alignment. Its other codes (F4, F6_*, F8_*, U16,
// U32, U64, C64) have no DType here and are refused by name.
constexpr std::array<Code, kDTypeCount> kCodes = {{{"BOOL", DType::kBool},
                                                   {"U8", DType::kU8},
                                                   {"I8", DType::kI8},
                                                   {"I16", DType::kI16},
                                                   {"F16", DType::kF16},
                                                   {"BF16", DType::kBF16},
                                                   {"I32", DType::kI32},
                                                   {"F32", DType::kF32},
                                                   {"F64", DType::kF64},
                                                   {"I64", DType::kI64}}};

/// The index in kCodes of each dtype, by its number.
constexpr std::array<int, kDTypeCount> kRanks = [] {
  std::array<int, kDTypeCount> ranks{};
  for (size_t i = 0; i < kCodes.size(); ++i) {
    ranks[static_cast<size_t>(kCodes[i].dtype)] = static_cast<int>(i);
  }
  return ranks;
}();

using Json = nlohmann::json;

/// A SAX parser, because a DOM parser would not report duplicate keys.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(std::string_view origin) : origin_(origin) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kFile;
        return true;
      case Place::kFile:
        place_ = name_ == kMetadata ? Place::kMetadata : Place::kTensor;
        has_metadata_ = has_metadata_ || name_ == kMetadata;
        entry_ = {name_, DType::kF32, {}, 0, 0};
        seen_fields_ = {};
        return true;
      default:
        return unexpected("an object");
    }
  }

  bool key(string_t& key) override {
    switch (place_) {
      case Place::kFile:
        check(is_new(key), "the key \"{}\" stands twice", key);
        name_ = key;
        return true;
      case Place::kMetadata:
        check(!header_.metadata.contains(key), "the key \"{}\" of __metadata__ stands twice", key);
        field_ = key;
        return true;
      default:
        return tensor_key(key);
    }
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      header_.metadata.emplace(field_, std::move(value));
      return true;
    }
    if (place_ != Place::kTensor || field_ != "dtype") return unexpected("a string");
    for (const Code& code : kCodes) {
      if (code.text == value) {
        entry_.dtype = code.dtype;
        return true;
      }
    }
    return fail("tensor \"{}\" has the dtype \"{}\", which is unknown or not supported", name_,
                value);
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kTensor || field_ == "dtype") return unexpected("an array");
    place_ = Place::kNumbers;
    numbers_.clear();
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kNumbers) return unexpected("a number");
    numbers_.push_back(value);
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    if (field_ == "shape") {
      for (const uint64_t size : numbers_) {
        check(size <= std::numeric_limits<int64_t>::max(),
              "tensor \"{}\" has the size {}, which is too large", name_, size);
        entry_.shape.push_back(static_cast<int64_t>(size));
      }
      return true;
    }
    check(numbers_.size() == 2, "tensor \"{}\" has {} data_offsets: expected 2", name_,
          numbers_.size());
    entry_.begin = numbers_[0];
    entry_.end = numbers_[1];
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kFile) return true;
    if (place_ == Place::kTensor) {
      for (size_t i = 0; i < kFields.size(); ++i) {
        check(seen_fields_[i], "tensor \"{}\" has no {}", name_, kFields[i]);
      }
      names_.add(entry_.name);
      header_.entries.push_back(std::move(entry_));
    }
    place_ = Place::kFile;
    return true;
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return unexpected("a number that is no integer below 2^64");
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    return fail("the header is not valid JSON at byte {}", position);
  }

 private:
  /// kNumbers is inside the array of shape or data_offsets.
  enum class Place { kStart, kFile, kMetadata, kTensor, kNumbers };
  static constexpr std::string_view kMetadata = "__metadata__";
  static constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};

  bool is_new(std::string_view key) const {
    if (key == kMetadata) return !has_metadata_;
    const auto name_at = [&](size_t i) -> std::string_view { return header_.entries[i].name; };
    return !names_.find(key, name_at);
  }

  bool tensor_key(const std::string& key) {
    for (size_t i = 0; i < kFields.size(); ++i) {
      if (kFields[i] != key) continue;
      check(!seen_fields_[i], "tensor \"{}\" has two members {}", name_, key);
      seen_fields_[i] = true;
      field_ = key;
      return true;
    }
    return fail("tensor \"{}\" has an unknown member \"{}\"", name_, key);
  }

  bool unexpected(std::string_view what) {
    return fail("\"{}\" holds {} where none may stand", name_, what);
  }

  template <class... Args>
  void check(bool condition, fmt::format_string<Args...> format, Args&&... args) {
    if (!condition) fail(format, std::forward<Args>(args)...);
  }

  template <class... Args>
  bool fail(fmt::format_string<Args...> format, Args&&... args) {
    throw CheckpointError(fmt::format("[safetensors] {}: {}.", origin_,
                                      fmt::format(format, std::forward<Args>(args)...)));
  }

  std::string_view origin_;
  SafetensorsHeader header_;
  Place place_ = Place::kStart;
  NameIndex names_;  ///< of the entries
  bool has_metadata_ = false;
  std::string name_;
  std::string field_;
  std::array<bool, 3> seen_fields_{};
  TensorEntry entry_;
  std::vector<uint64_t> numbers_;
};

std::string quoted(const std::string& text, std::string_view origin) {
  try {
    return Json(text).dump();
  } catch (const Json::type_error&) {
    throw CheckpointError(
        fmt::format("[safetensors] {}: the name \"{}\" is not UTF-8.", origin, text));
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, std::string_view origin) {
  // The parser would skip a byte order mark and stop at a NUL; the format allows neither.
  LS_CHECK(json.starts_with('{'), CheckpointError,
           "[safetensors] {}: the header does not start with \"{{\".", origin);
  LS_CHECK(json.find('\0') == json.npos, CheckpointError,
           "[safetensors] {}: the header holds a NUL byte; it must be padded with spaces.", origin);
  HeaderReader reader(origin);
  Json::sax_parse(json.begin(), json.end(), &reader);
  return reader.take();
}

std::string format_safetensors_header(const SafetensorsHeader& header, std::string_view origin) {
  std::string json = "{\"__metadata__\":{";
  for (const auto& [key, value] : header.metadata) {
    if (json.back() != '{') json += ',';
    json += quoted(key, origin) + ":" + quoted(value, origin);
  }
  json += '}';
  for (const TensorEntry& entry : header.entries) {
    json += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        quoted(entry.name, origin), kCodes[safetensors_rank(entry.dtype)].text,
                        fmt::join(entry.shape, ","), entry.begin, entry.end);
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  return json;
}

uint64_t byte_count(DType dtype, std::span<const int64_t> shape, std::string_view origin,
                    std::string_view name) {
  int64_t bytes = static_cast<int64_t>(size_of(dtype));
  for (const int64_t size : shape) {
    LS_CHECK(size >= 0, CheckpointError, "[safetensors] {}: tensor \"{}\" has the size {}.", origin,
             name, size);
    LS_CHECK(!__builtin_mul_overflow(bytes, size, &bytes), CheckpointError,
             "[safetensors] {}: the sizes of tensor \"{}\" are too large: [{}].", origin, name,
             fmt::join(shape, ", "));
  }
  return static_cast<uint64_t>(bytes);
}

int safetensors_rank(DType dtype) { return kRanks[static_cast<size_t>(dtype)]; }

void check_header_bytes(uint64_t bytes, uint64_t left, std::string_view origin) {
  LS_CHECK(
      bytes <= kMaxSafetensorsHeaderBytes, CheckpointError,
      "[safetensors] {}: a header of {} bytes: expected at most {}. Is this a safetensors file?",
      origin, bytes, kMaxSafetensorsHeaderBytes);
  LS_CHECK(bytes <= left, CheckpointError,
           "[safetensors] {}: the header of {} bytes ends past the file. The file is truncated.",
           origin, bytes);
}

void check_layout(SafetensorsHeader& header, uint64_t data_bytes, std::string_view origin) {
  const auto comes_before = [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  };
  // Most writers list the tensors in the order of their bytes.
  if (!std::ranges::is_sorted(header.entries, comes_before)) {
    std::ranges::sort(header.entries, comes_before);
  }
  uint64_t position = 0;
  for (const TensorEntry& entry : header.entries) {
    LS_CHECK(
        entry.begin == position && entry.end >= entry.begin, CheckpointError,
        "[safetensors] {}: tensor \"{}\" lies at bytes {} to {} where the next free byte is {}: "
        "offsets may neither overlap nor leave holes.",
        origin, entry.name, entry.begin, entry.end, position);
    LS_CHECK(
        entry.end <= data_bytes, CheckpointError,
        "[safetensors] {}: tensor \"{}\" ends at byte {} of the data, which has {}. The file is "
        "truncated.",
        origin, entry.name, entry.end, data_bytes);
    const uint64_t bytes = byte_count(entry.dtype, entry.shape, origin, entry.name);
    LS_CHECK(entry.end - entry.begin == bytes, CheckpointError,
             "[safetensors] {}: tensor \"{}\" has {} bytes where its shape needs {}.", origin,
             entry.name, entry.end - entry.begin, bytes);
    position = entry.end;
  }
  LS_CHECK(position == data_bytes, CheckpointError,
           "[safetensors] {}: {} bytes follow the last tensor: expected none.", origin,
           data_bytes - position);
}

}  // namespace lockstep::train
