#include "core/memory/pickle.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/check.h"

namespace lockstep {

namespace {

// Opcodes of Python's pickle protocol 2 (the standard library's pickletools lists them).
constexpr char kProtocol = '\x80';
constexpr char kStop = '.';
constexpr char kMark = '(';
constexpr char kNone = 'N';
constexpr char kTrue = '\x88';
constexpr char kFalse = '\x89';
constexpr char kByte = 'K';
constexpr char kTwoBytes = 'M';
constexpr char kFourBytes = 'J';
constexpr char kLong = '\x8a';
constexpr char kFloat = 'G';
constexpr char kUnicode = 'X';
constexpr char kEmptyList = ']';
constexpr char kEmptyDict = '}';
constexpr char kAppends = 'e';
constexpr char kSetItems = 'u';
constexpr char kTuple2 = '\x86';
constexpr char kPut = 'q';
constexpr char kLongPut = 'r';
constexpr char kGet = 'h';
constexpr char kLongGet = 'j';

/// Elements appended to a container by one opcode; readers hold that many on their stack.
constexpr size_t kBatch = 1000;

/// Bytes of the UTF-8 character at the start of `text`; 0 if it is invalid.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) >= 0xa0;
  const bool beyond = first == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

std::string as_utf8(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = character_length(text);
    result += length > 0 ? text.substr(0, length) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return result;
}

}  // namespace

PickleWriter::PickleWriter() : bytes_{kProtocol, 2} {}

void PickleWriter::little_endian(uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i));
}

void PickleWriter::place() {
  if (open_.empty()) return;
  Open& container = open_.back();
  if (container.kind != Kind::kPair) {
    const size_t each = container.kind == Kind::kDict ? 2 : 1;
    if (container.count % (kBatch * each) == 0) {
      if (container.count > 0) bytes_ += container.kind == Kind::kDict ? kSetItems : kAppends;
      bytes_ += kMark;
    }
  }
  ++container.count;
}

void PickleWriter::none() {
  place();
  bytes_ += kNone;
}

void PickleWriter::boolean(bool value) {
  place();
  bytes_ += value ? kTrue : kFalse;
}

void PickleWriter::integer(int64_t value) {
  if (value >= 0) {
    integer(static_cast<uint64_t>(value));
    return;
  }
  place();
  const bool short_form = value >= INT32_MIN;
  bytes_ += short_form ? kFourBytes : kLong;
  if (!short_form) bytes_ += 8;
  little_endian(static_cast<uint64_t>(value), short_form ? 4 : 8);
}

void PickleWriter::integer(uint64_t value) {
  place();
  if (value <= UINT8_MAX) {
    bytes_ += kByte;
    little_endian(value, 1);
  } else if (value <= UINT16_MAX) {
    bytes_ += kTwoBytes;
    little_endian(value, 2);
  } else if (value <= INT32_MAX) {
    bytes_ += kFourBytes;
    little_endian(value, 4);
  } else {
    // Two's complement: the highest bit must be clear.
    const int bytes = static_cast<int>(std::bit_width(value)) / 8 + 1;
    bytes_ += kLong;
    bytes_ += static_cast<char>(bytes);
    little_endian(value, std::min(bytes, 8));
    if (bytes == 9) bytes_ += '\0';
  }
}

void PickleWriter::real(double value) {
  place();
  bytes_ += kFloat;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  for (int i = 7; i >= 0; --i) bytes_ += static_cast<char>(bits >> (8 * i));
}

void PickleWriter::text(std::string_view value) {
  const auto known = texts_.find(value);
  if (known != texts_.end()) {
    recall(known->second);
    return;
  }
  place();
  const std::string utf8 = as_utf8(value);
  LS_CHECK(utf8.size() <= UINT32_MAX, DataError,
           "[pickle] a text of {} bytes is too long: expected at most 4 GiB.", utf8.size());
  bytes_ += kUnicode;
  little_endian(utf8.size(), 4);
  bytes_ += utf8;
  texts_.emplace(value, remember());
}

void PickleWriter::begin(Kind kind) {
  place();
  if (kind != Kind::kPair) bytes_ += kind == Kind::kDict ? kEmptyDict : kEmptyList;
  open_.push_back({kind});
}

void PickleWriter::end(Kind kind) {
  LS_ASSERT(!open_.empty() && open_.back().kind == kind);
  const size_t count = open_.back().count;
  open_.pop_back();
  switch (kind) {
    case Kind::kPair:
      LS_ASSERT(count == 2);
      bytes_ += kTuple2;
      break;
    case Kind::kDict:
      LS_ASSERT(count % 2 == 0);
      if (count > 0) bytes_ += kSetItems;
      break;
    case Kind::kList:
      if (count > 0) bytes_ += kAppends;
      break;
  }
}

void PickleWriter::begin_list() { begin(Kind::kList); }
void PickleWriter::end_list() { end(Kind::kList); }
void PickleWriter::begin_dict() { begin(Kind::kDict); }
void PickleWriter::end_dict() { end(Kind::kDict); }
void PickleWriter::begin_pair() { begin(Kind::kPair); }
void PickleWriter::end_pair() { end(Kind::kPair); }

uint32_t PickleWriter::remember() {
  const uint32_t number = remembered_++;
  const bool short_form = number <= UINT8_MAX;
  bytes_ += short_form ? kPut : kLongPut;
  little_endian(number, short_form ? 1 : 4);
  return number;
}

void PickleWriter::recall(uint32_t number) {
  place();
  const bool short_form = number <= UINT8_MAX;
  bytes_ += short_form ? kGet : kLongGet;
  little_endian(number, short_form ? 1 : 4);
}

std::string PickleWriter::finish() {
  LS_ASSERT(open_.empty());
  bytes_ += kStop;
  return std::move(bytes_);
}

}  // namespace lockstep
