#include "train/report/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <climits>
#include <cstring>

#include "core/base/crc32c.h"

namespace lockstep::train {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// Protocol-buffer wire format: a field is a varint of (number << 3 | type), then its value.
enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes += static_cast<char>(value);
}

std::string key(uint64_t number, WireType type) { return varint(number << 3 | type); }

std::string integer_field(uint64_t number, int64_t value) {
  return key(number, kVarint) + varint(static_cast<uint64_t>(value));
}
std::string double_field(uint64_t number, double value) {
  return key(number, kFixed64) + bytes_of(value);
}
std::string float_field(uint64_t number, float value) {
  return key(number, kFixed32) + bytes_of(value);
}
std::string bytes_field(uint64_t number, std::string_view value) {
  return key(number, kBytes) + varint(value.size()) + std::string(value);
}

// Field numbers of TensorBoard's messages.
constexpr uint64_t kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5,
                   kEventSessionLog = 7;
constexpr uint64_t kSessionLogStatus = 1;
constexpr int64_t kSessionLogStart = 1;
constexpr uint64_t kSummaryValue = 1;
constexpr uint64_t kValueTag = 1, kValueSimpleValue = 2;

uint32_t masked_crc(std::string_view bytes) {
  return masked_crc32c(crc32c(std::as_bytes(std::span(bytes))));
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

std::filesystem::path unused_path(const std::filesystem::path& folder) {
  for (int number = 0;; ++number) {
    const std::filesystem::path path =
        folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<int64_t>(now()),
                             host(), ::getpid(), number);
    if (!std::filesystem::exists(path)) return path;
  }
}

}  // namespace

namespace events {

std::string version(double wall_time) {
  return double_field(kEventWallTime, wall_time) + bytes_field(kEventFileVersion, "brain.Event:2");
}

std::string session_start(double wall_time, int64_t step) {
  return double_field(kEventWallTime, wall_time) + integer_field(kEventStep, step) +
         bytes_field(kEventSessionLog, integer_field(kSessionLogStatus, kSessionLogStart));
}

std::string scalars(double wall_time, int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    summary += bytes_field(kSummaryValue,
                           bytes_field(kValueTag, scalar.tag) +
                               float_field(kValueSimpleValue, static_cast<float>(scalar.value)));
  }
  return double_field(kEventWallTime, wall_time) + integer_field(kEventStep, step) +
         bytes_field(kEventSummary, summary);
}

std::string framed(std::string_view event) {
  const std::string length = bytes_of(static_cast<uint64_t>(event.size()));
  return length + bytes_of(masked_crc(length)) + std::string(event) + bytes_of(masked_crc(event));
}

}  // namespace events

EventFile::EventFile(const std::filesystem::path& folder, int64_t first_step)
    : file_(unused_path(folder), O_WRONLY | O_CREAT | O_EXCL) {
  append(events::version(now()));
  if (first_step > 1) restart(first_step);
}

void EventFile::restart(int64_t step) { append(events::session_start(now(), step)); }

void EventFile::write(int64_t step, std::span<const Scalar> scalars) {
  append(events::scalars(now(), step, scalars));
}

void EventFile::append(std::string_view event) {
  const std::string record = events::framed(event);
  file_.write(std::as_bytes(std::span(record)));
}

}  // namespace lockstep::train
