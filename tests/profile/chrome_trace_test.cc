#include "profile/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"
#include "tests/profile/made_up_profile.h"

namespace lockstep::profile {
namespace {

using Json = nlohmann::json;

/// The events whose `key` is `value`.
std::vector<Json> events_of(const Profile& profile, const char* key, const std::string& value) {
  std::vector<Json> found;
  const Json trace = Json::parse(trace_json(profile));
  for (const Json& event : trace.at("traceEvents")) {
    if (event.value(key, "") == value) found.push_back(event);
  }
  return found;
}

TEST(ChromeTrace, NamesItsFieldsAsPyTorchDoes) {
  const Profile profile = made_up_profile();
  const Json trace = Json::parse(trace_json(profile));
  EXPECT_EQ(trace["schemaVersion"], 1);
  EXPECT_EQ(trace["baseTimeNanoseconds"], 1'700'000'000'000'000'000);
  EXPECT_EQ(trace["distributedInfo"], Json({{"backend", "mpi"}, {"rank", 1}, {"world_size", 2}}));
  const Json add = events_of(profile, "name", "aten::add").at(0);
  EXPECT_EQ(add["ph"], "X");
  EXPECT_EQ(add["cat"], "cpu_op");
  EXPECT_EQ(add["pid"], 77);
  EXPECT_EQ(add["tid"], 100);
  EXPECT_EQ(add["ts"], 1.5);
  EXPECT_EQ(add["dur"], 2.25);
  EXPECT_EQ(add["args"]["External id"], 2);
  EXPECT_EQ(add["args"]["Sequence number"], 42);
  EXPECT_EQ(add["args"]["Overload"], "Tensor");
  EXPECT_EQ(add["args"]["Input Dims"], Json::parse("[[2,3],[],[]]"));
  EXPECT_EQ(add["args"]["Input type"], Json::parse(R"(["float","Scalar","TensorList"])"));
  EXPECT_EQ(add["args"]["Concrete Inputs"], Json::parse(R"(["","0.5",""])"));
  EXPECT_EQ(events_of(profile, "name", "ProfilerStep#12").at(0)["cat"], "user_annotation");
  EXPECT_EQ(events_of(profile, "name", "thread_name").at(0)["args"]["name"], "main 100");
}

TEST(ChromeTrace, ArrowsLeadFromForwardToBackward) {
  const Profile profile = made_up_profile();
  const Json node =
      events_of(profile, "name", "autograd::engine::evaluate_function: AddBackward0").at(0);
  EXPECT_EQ(node["tid"], 101);
  EXPECT_EQ(node["args"]["Fwd thread id"], 100);
  const std::vector<Json> arrow = events_of(profile, "cat", "fwdbwd");
  ASSERT_EQ(arrow.size(), 2u);
  EXPECT_EQ(arrow[0]["ph"], "s");
  EXPECT_EQ(arrow[0]["tid"], 100);
  EXPECT_EQ(arrow[1]["ph"], "f");
  EXPECT_EQ(arrow[1]["bp"], "e");
  EXPECT_EQ(arrow[1]["tid"], 101);
  EXPECT_EQ(arrow[0]["id"], arrow[1]["id"]);
}

TEST(ChromeTrace, ReadsBackWhatItWrote) {
  const train::TemporaryDirectory folder;
  Profile written = made_up_profile();
  written.threads_without_buffer = 2;
  written.lost_work = 5;
  write_trace(folder / "trace.json.gz", written);
  const Profile read = read_trace_file(folder / "trace.json.gz");
  EXPECT_EQ(trace_json(read), trace_json(written));
  EXPECT_EQ(read.spans.at(0).self_ns, written.spans[0].self_ns);
  EXPECT_EQ(read.spans.at(1).name, "add.Tensor");
  EXPECT_EQ(read.spans.at(1).arguments, written.spans[1].arguments);
  EXPECT_EQ(read.threads.at(0).lost, 3u);
  EXPECT_EQ(losses_text(read), losses_text(written));
  EXPECT_THAT(losses_text(read), ::testing::HasSubstr("5 kernels and copies"));
}

TEST(ChromeTrace, CollectivesCarryTheirGroupAndWhatTheyAreFor) {
  Profile profile = made_up_profile();
  ProfileSpan& span = profile.spans[2];
  span.kind = SpanKind::kCollective;
  span.name = "reduce_scatter";
  span.note = "world";
  span.label = "unit h.0";
  span.sequence = 7;
  span.bytes = 64;
  const Json args = events_of(profile, "name", "reduce_scatter").at(0)["args"];
  EXPECT_EQ(args["Collective name"], "reduce_scatter");
  EXPECT_EQ(args["Process Group Name"], "world");
  EXPECT_EQ(args["Label"], "unit h.0");
  EXPECT_EQ(args["Sequence number"], 7);
  EXPECT_EQ(args["Bytes"], 64);
  EXPECT_EQ(read_trace(trace_json(profile), "x").spans.at(2).label, "unit h.0");
  EXPECT_NE(merged_trace_json({profile}).find("\"Label\":\"unit h.0\""), std::string::npos);
}

TEST(ChromeTrace, NamesMayHoldAnything) {
  Profile profile = made_up_profile();
  profile.spans[2].name = "quote \" backslash \\ and no UTF-8 \xff";
  EXPECT_NO_THROW((void)Json::parse(trace_json(profile)));
}

TEST(ChromeTrace, WhatIsNoTraceOfOursIsRefused) {
  const auto refused = [](const std::string& text) {
    expect_error<DataError>([&] { (void)read_trace(text, "there.json"); },
                            "there.json is no trace of a Lockstep profile");
  };
  refused("");
  refused("[]");
  refused(R"({"traceEvents": []})");
  Json trace = Json::parse(trace_json(made_up_profile()));
  for (Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") event["args"]["Parent Idx"] = 5;
  }
  refused(trace.dump());
  trace = Json::parse(trace_json(made_up_profile()));
  for (Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") event["args"]["Cause Idx"] = 500;
  }
  refused(trace.dump());
}

}  // namespace
}  // namespace lockstep::profile
