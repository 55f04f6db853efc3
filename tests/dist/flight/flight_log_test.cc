#include "dist/flight/flight_log.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

/// A log in which every field is set.
FlightLog full_log() {
  FlightRecord record;
  record.signature = {.group = 0xfedcba9876543210,
                      .sequence = 17,
                      .kind = OpKind::kReduceScatter,
                      .dtype = DType::kBF16,
                      .reduction = {ReduceOp::kPremultipliedSum, 0.1},
                      .root = 0,
                      .count = int64_t{1} << 60};
  set_group_name(record, "data parallel");
  set_label(record, "unit h.0");
  record.state = FlightRecord::State::kStarted;
  record.tensors = 4;
  record.awaited_ranks = uint64_t{1} << 63 | 5;
  record.queued_ns = 1'700'000'000'123'456'789;
  record.started_ns = 1'700'000'000'123'456'790;
  FlightRecord message;
  message.signature = {.group = 1,
                       .sequence = 0,
                       .kind = OpKind::kSend,
                       .dtype = DType::kBool,
                       .reduction = {},
                       .root = 2,
                       .count = 0};
  message.user_tag = 65535;
  message.state = FlightRecord::State::kDone;
  return {
      .rank = 1,
      .world_size = 100,
      .start = "2f81c0",
      .host = "alpha",
      .process = 4121,
      .reason = "a \"quoted\"\nreason",
      .written_ns = 1'700'000'000'999'999'999,
      .recorded = 12345,
      .groups = {{0xfedcba9876543210, "data parallel", {1, 5, 99}, 17}, {1, "", {}, std::nullopt}},
      .records = {record, message}};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("not in the text: " + from);
  return text.replace(at, from.size(), to);
}

TEST(FlightLog, WrittenOutReadsBackTheSame) {
  EXPECT_EQ(parse_flight_log(format_flight_log(full_log()), "x"), full_log());
  EXPECT_EQ(parse_flight_log(format_flight_log({}), "x"), FlightLog());
}

TEST(FlightLog, ASumOverADealOfLeavesReadsBackTheSame) {
  FlightLog log = full_log();
  log.records[0].signature.reduction = {.leaves = 6};
  log.records[0].signature.deal = 0x8000'0000'0000'0001;
  EXPECT_EQ(parse_flight_log(format_flight_log(log), "x"), log);
}

TEST(FlightLog, OneWithoutAStartIsReadAsOfNone) {
  FlightLog log = full_log();
  const std::string text = replaced(format_flight_log(log), " \"start\": \"2f81c0\",\n", "");
  log.start.clear();
  EXPECT_EQ(parse_flight_log(text, "x"), log);
}

TEST(FlightLog, OneOfAVersionWithoutLabelsIsRead) {
  FlightLog log = full_log();
  const std::string text = replaced(format_flight_log(log), ",\"label\":\"unit h.0\"", "");
  set_label(log.records[0], "");
  EXPECT_EQ(parse_flight_log(text, "x"), log);
}

TEST(FlightLog, SaysTheOperationInWords) {
  EXPECT_NE(format_flight_log(full_log()).find(to_string(full_log().records[0].signature)),
            std::string::npos);
}

TEST(FlightLog, FactorsThatJsonCannotSayReadBack) {
  FlightLog log = full_log();
  for (const double factor : {std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity(), 1e-310, -0.0}) {
    log.records[0].signature.reduction.factor = factor;
    EXPECT_EQ(parse_flight_log(format_flight_log(log), "x"), log) << factor;
  }
}

TEST(FlightLog, BytesThatAreNoTextDoNotKeepALogFromBeingWritten) {
  FlightLog log = full_log();
  log.reason = "broken \xff\xfe";
  set_group_name(log.records[0], "\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3");
  const FlightLog read = parse_flight_log(format_flight_log(log), "x");
  EXPECT_EQ(read.reason, "broken \uFFFD\uFFFD");
  EXPECT_EQ(parse_flight_log(format_flight_log(read), "x"), read);
}

TEST(FlightLog, AFileThatIsMissingOrAFolderIsNamed) {
  const train::TemporaryDirectory folder;
  expect_error<DataError>([&] { (void)read_flight_log(folder / "none.json"); },
                          (folder / "none.json").string(), "cannot be read");
  expect_error<DataError>([&] { (void)read_flight_log(folder.path()); }, folder.path().string());
}

TEST(FlightLog, AFileThatIsCutShortSaysWhere) {
  const std::string text = format_flight_log(full_log());
  for (size_t bytes = 0; bytes + 2 < text.size(); bytes += 7) {
    expect_error<DataError>([&] { (void)parse_flight_log(text.substr(0, bytes), "cut.json"); },
                            "[flight log] cut.json: not JSON from byte");
  }
}

TEST(FlightLog, WhatIsWrongIsNamed) {
  const std::string good = format_flight_log(full_log());
  const auto refused = [&](const std::string& from, const std::string& to,
                           const std::string& problem) {
    const std::string text = replaced(good, from, to);
    expect_error<DataError>([&] { (void)parse_flight_log(text, "f.json"); }, "f.json: ", problem);
  };
  refused("lockstep flight log", "something else", "this is no lockstep flight log");
  refused("\"format_version\": 1", "\"format_version\": 2", "format version is 2");
  refused("\"rank\": 1,", "\"rank\": 100,", "\"rank\" is 100, not from 0 to 99");
  refused("\"rank\": 1,", "\"rank\": -1,", "\"rank\" is -1");
  refused("\"rank\": 1,", "\"rank\": 1.5,", "\"rank\" is not an integer");
  refused("\"world_size\": 100", "\"world_size\": 0", "\"world_size\" is 0");
  refused("\"world_size\": 100", "\"world_size\": 99999999", "\"world_size\"");
  refused("\"recorded\": 12345", "\"recorded\": -1", "\"recorded\"");
  refused("\"host\": \"alpha\",", "", "host");
  refused("[1,5,99]", "[1,5,100]", "\"rank\" is 100");
  refused("[1,5,99]", "7", "f.json");
  refused("\"id\":\"fedc", "\"id\":\"fed\", \"x\": \"", "16 hexadecimal digits");
  refused("\"kind\":\"send\"", "\"kind\":\"sendd\"",
          "operation 1: \"kind\" is an unknown \"sendd\"");
  refused("\"dtype\":\"bool\"", "\"dtype\":\"b\"", "operation 1: \"dtype\"");
  refused("\"state\":\"started\"", "\"state\":\"stopped\"", "operation 0: \"state\"");
  refused("\"awaited_ranks\":[0,2,63]", "\"awaited_ranks\":[64]", "operation 0: \"rank\" is 64");
  refused("\"reduction\":\"premultiplied_sum\"", "\"reduction\":3", "operation 0: ");
  refused("\"factor\":0.1", "\"factor\":\"x\"", "operation 0: \"factor\"");
}

TEST(FlightLog, OtherJsonIsRefused) {
  for (const char* text : {"", "null", "[]", "{}", "3", "\"x\"", "{\"format\": 3}"}) {
    EXPECT_THROW((void)parse_flight_log(text, "x"), DataError) << text;
  }
  expect_error<DataError>([] { (void)parse_flight_log(std::string(1'000'000, '['), "deep.json"); },
                          "deep.json: [json] nested deeper than 64");
}

rc::Gen<FlightRecord> records() {
  return rc::gen::exec([] {
    FlightRecord record;
    Signature& signature = record.signature;
    signature.group = *rc::gen::arbitrary<uint64_t>();
    signature.sequence = *rc::gen::arbitrary<uint64_t>();
    signature.kind = static_cast<OpKind>(*rc::gen::inRange(0, 9));
    signature.dtype = static_cast<DType>(*rc::gen::inRange(0, kDTypeCount));
    signature.reduction.op = static_cast<ReduceOp>(*rc::gen::inRange(0, 5));
    signature.reduction.factor = *rc::gen::arbitrary<double>();
    signature.reduction.leaves = *rc::gen::arbitrary<int32_t>();
    signature.deal = *rc::gen::arbitrary<uint64_t>();
    signature.root = *rc::gen::arbitrary<int>();
    signature.count = *rc::gen::arbitrary<int64_t>();
    set_group_name(record, *rc::gen::container<std::string>(rc::gen::inRange<char>(32, 127)));
    record.state = static_cast<FlightRecord::State>(*rc::gen::inRange(0, 4));
    record.tensors = *rc::gen::arbitrary<uint32_t>();
    record.user_tag = *rc::gen::arbitrary<uint32_t>();
    record.awaited_ranks = *rc::gen::arbitrary<uint64_t>();
    record.queued_ns = *rc::gen::arbitrary<int64_t>();
    record.started_ns = *rc::gen::arbitrary<int64_t>();
    record.ended_ns = *rc::gen::arbitrary<int64_t>();
    return record;
  });
}

RC_GTEST_PROP(FlightLogProperty, AnyRecordsReadBackTheSame, ()) {
  FlightLog log = full_log();
  log.records = *rc::gen::container<std::vector<FlightRecord>>(records());
  RC_ASSERT(parse_flight_log(format_flight_log(log), "x") == log);
}

RC_GTEST_PROP(FlightLogProperty, AChangedFileIsReadOrRefused, ()) {
  std::string text = format_flight_log(full_log());
  const int changes = *rc::gen::inRange(1, 4);
  for (int i = 0; i < changes; ++i) {
    text[*rc::gen::inRange<size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  }
  try {
    const FlightLog log = parse_flight_log(text, "x");
    RC_ASSERT(parse_flight_log(format_flight_log(log), "x") == log);
  } catch (const DataError&) {
  }
}

}  // namespace
}  // namespace lockstep::dist
