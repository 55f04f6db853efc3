#include "dist/rendezvous/store_message.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

constexpr size_t kLengthBytes = 4;

StoreMessage any_message() {
  StoreMessage message;
  message.kind = *rc::gen::element(StoreMessage::Kind::kHello, StoreMessage::Kind::kWait,
                                   StoreMessage::Kind::kPost, StoreMessage::Kind::kAnswer,
                                   StoreMessage::Kind::kClosing);
  message.id = *rc::gen::arbitrary<uint64_t>();
  message.numbers = *rc::gen::arbitrary<std::vector<int64_t>>();
  message.texts = *rc::gen::arbitrary<std::vector<std::string>>();
  return message;
}

RC_GTEST_PROP(StoreMessage, WhatIsWrittenIsRead, ()) {
  const StoreMessage message = any_message();
  const std::string bytes = encode(message);
  RC_ASSERT(decode(std::string_view(bytes).substr(kLengthBytes)) == message);
}

RC_GTEST_PROP(StoreMessage, OneThatIsCutIsNone, ()) {
  const std::string bytes = encode(any_message()).substr(kLengthBytes);
  const auto length = *rc::gen::inRange<size_t>(0, bytes.size());
  RC_ASSERT(!decode(std::string_view(bytes).substr(0, length)));
  RC_ASSERT(!decode(bytes + '\0'));
}

RC_GTEST_PROP(StoreMessage, AnyBytesAreOneOrNone, ()) {
  std::string bytes = *rc::gen::arbitrary<std::string>();
  if (*rc::gen::arbitrary<bool>()) {
    bytes = encode(any_message()).substr(kLengthBytes);
    bytes[*rc::gen::inRange<size_t>(0, bytes.size())] = *rc::gen::arbitrary<char>();
  }
  const auto message = decode(bytes);
  if (message) RC_ASSERT(encode(*message).substr(kLengthBytes) == bytes);
}

TEST(StoreMessage, NumbersThatPromiseMoreThanThereIsGetNoMemory) {
  // Kind, id, 255 numbers, 65535 texts, then no more bytes.
  const std::string bytes = std::string(1, '\1') + std::string(8, '\0') + "\xff\xff\xff";
  EXPECT_FALSE(decode(bytes));
}

TEST(StoreMessage, OneThatIsTooLargeIsNotWritten) {
  const StoreMessage message{StoreMessage::Kind::kSet, 0, {}, {"key", std::string(18 << 20, 'x')}};
  expect_error<DistError>([&] { encode(message); }, "small values");
}

TEST(StoreMessage, EachStatusIsAnErrorOfItsOwn) {
  expect_error<DistError>([] { throw_error(StoreStatus::kDistError, "a"); }, "a");
  expect_error<TimeoutError>([] { throw_error(StoreStatus::kTimeoutError, "b"); }, "b");
  expect_error<PeerLostError>([] { throw_error(StoreStatus::kPeerLostError, "c"); }, "c");
  expect_error<MismatchError>([] { throw_error(StoreStatus::kMismatchError, "d"); }, "d");
}

}  // namespace
}  // namespace lockstep::dist
