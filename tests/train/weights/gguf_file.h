#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::train {

/// What a GGUF file says, read as its specification describes it.
class GgufFile {
 public:
  struct TensorInfo {
    std::vector<uint64_t> sizes;  ///< the contiguous dimension first
    uint32_t type = 0;
    std::string_view bytes;
  };

  explicit GgufFile(std::string content) : content_(std::move(content)), left_(content_) {
    EXPECT_EQ(take(4), "GGUF");
    EXPECT_EQ(number<uint32_t>(), 3u);
    const auto tensors = number<uint64_t>(), entries = number<uint64_t>();
    for (uint64_t i = 0; i < entries; ++i) {
      const std::string key(text());
      metadata_.push_back(key + " = " + value(number<uint32_t>()));
    }
    struct Info {
      std::string name;
      TensorInfo tensor;
      uint64_t offset;
    };
    std::vector<Info> infos;
    for (uint64_t i = 0; i < tensors; ++i) {
      Info info{std::string(text()), {}, 0};
      const auto dimensions = number<uint32_t>();
      for (uint32_t d = 0; d < dimensions; ++d) {
        info.tensor.sizes.push_back(number<uint64_t>());
      }
      info.tensor.type = number<uint32_t>();
      info.offset = number<uint64_t>();
      EXPECT_EQ(info.offset % 32, 0u) << info.name;
      infos.push_back(std::move(info));
    }
    const size_t header = content_.size() - left_.size();
    const size_t begin = (header + 31) / 32 * 32;
    for (Info& info : infos) {
      uint64_t bytes = info.tensor.type == 0 ? 4 : 2;
      for (const uint64_t size : info.tensor.sizes) bytes *= size;
      info.tensor.bytes = std::string_view(content_).substr(begin + info.offset, bytes);
      EXPECT_EQ(info.tensor.bytes.size(), bytes) << info.name << " ends behind the file";
      end_ = begin + info.offset + (bytes + 31) / 32 * 32;
      names_.push_back(info.name);
      tensors_[info.name] = std::move(info.tensor);
    }
    EXPECT_EQ(end_, content_.size());
  }

  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  /// "key = type value", arrays as "type [value value]".
  const std::vector<std::string>& metadata() const { return metadata_; }
  const std::vector<std::string>& names() const { return names_; }
  const TensorInfo& tensor(const std::string& name) const { return tensors_.at(name); }

 private:
  std::string_view take(size_t count) {
    const std::string_view part = left_.substr(0, count);
    left_.remove_prefix(part.size());
    return part;
  }
  template <class T>
  T number() {
    T value{};
    const std::string_view bytes = take(sizeof(T));
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::string_view text() { return take(number<uint64_t>()); }

  std::string element(uint32_t type) {
    switch (type) {
      case 4:
        return fmt::format("{}", number<uint32_t>());
      case 5:
        return fmt::format("{}", number<int32_t>());
      case 6:
        return fmt::format("{}", number<float>());
      case 7:
        return number<uint8_t>() == 0 ? "false" : "true";
      default:
        EXPECT_EQ(type, 8u);
        return std::string(text());
    }
  }
  std::string value(uint32_t type) {
    constexpr const char* kNames[] = {"", "", "", "", "u32", "i32", "f32", "bool", "text"};
    if (type != 9) return fmt::format("{} {}", kNames[type], element(type));
    const auto of = number<uint32_t>();
    const auto count = number<uint64_t>();
    std::string all = fmt::format("{} [", kNames[of]);
    for (uint64_t i = 0; i < count; ++i) all += (i == 0 ? "" : " ") + element(of);
    return all + "]";
  }

  std::string content_;
  std::string_view left_;
  size_t end_ = 0;
  std::vector<std::string> metadata_;
  std::vector<std::string> names_;
  std::map<std::string, TensorInfo> tensors_;
};

}  // namespace lockstep::train
