#include "train/page/page_sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/page/html.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

RunRecord named_run(const std::string& name) {
  RunRecord run;
  run.name = name;
  run.path = "runs/" + name;
  return run;
}

void add_points(RunRecord& run, const std::string& member, const std::vector<double>& values) {
  StepSeries& series = run.series.try_emplace(member).first->second;
  int64_t step = 0;
  for (const double value : values) series.add(++step, value);
}

std::string summary(const RunRecord& run) { return page::summary_section({&run, 1}); }

TEST(PageSections, WhatARunDoesNotSayHasNoSection) {
  const RunRecord run = named_run("a");
  const std::span<const RunRecord> one(&run, 1);
  EXPECT_THAT(page::missing_section(one), IsEmpty());
  EXPECT_THAT(page::events_section(one), IsEmpty());
  EXPECT_THAT(page::samples_section(one), IsEmpty());
  EXPECT_THAT(page::config_section(one), IsEmpty());
  EXPECT_THAT(page::overlap_section(one), IsEmpty());
  EXPECT_THAT(page::machine_section(one), IsEmpty());
  EXPECT_THAT(page::repeat_section(one), IsEmpty());
}

TEST(PageSections, TheSummaryOfARunThatSaysLittleIsShort) {
  EXPECT_EQ(summary(named_run("a")),
            html::table({"What the runs came to",
                         {"Name", "a"},
                         {{"Steps", "0"},
                          {"Ended", "not told: it goes on, or was cut short"},
                          {"Directory", "runs/a"}}}));
}

TEST(PageSections, TheSummaryHasAllThatARunSays) {
  RunRecord run = named_run("a");
  run.steps = 1500;
  run.ended = "finished";
  run.ranks = 2;
  run.tokens_per_step = 64;
  run.environment = {
      {"start_time", "2026-01-01"}, {"version", "1.2.3"}, {"commit", "0123456789abcdef"}};
  run.goodput = {{"wall_s", 3661}, {"goodput", 0.8125}, {"starts", 3}, {"restarts", 2}};
  add_points(run, "loss", {3, 1.23456});
  add_points(run, "val_loss", {2.5, 1.5, 2});
  add_points(run, "val_bits_per_byte", {1.25, 1.75});
  EXPECT_EQ(summary(run), html::table({"What the runs came to",
                                       {"Name", "a"},
                                       {{"Started", "2026-01-01"},
                                        {"Steps", "1,500"},
                                        {"Ended", "finished"},
                                        {"Ranks", "2"},
                                        {"Tokens", "96,000"},
                                        {"Last training loss", "1.2346"},
                                        {"Best held-out loss", "1.5000 (step 2)"},
                                        {"Last held-out loss", "2.0000"},
                                        {"Last bits per byte", "1.7500"},
                                        {"Wall time", "1:01:01"},
                                        {"Goodput", "81.2 % of the wall time in steps that count"},
                                        {"Starts", "3, 2 of them after a failure"},
                                        {"Lockstep", "1.2.3, commit 0123456789ab"},
                                        {"Directory", "runs/a"}}}));
}

TEST(PageSections, WhatOneOfSeveralRunsDoesNotSayIsNotSet) {
  std::vector<RunRecord> runs = {named_run("a"), named_run("b")};
  runs[1].ranks = 2;
  EXPECT_EQ(page::summary_section(runs),
            html::table({"What the runs came to",
                         {"Name", "a", "b"},
                         {{"Steps", "0", "0"},
                          {"Ended", "not told: it goes on, or was cut short",
                           "not told: it goes on, or was cut short"},
                          {"Directory", "runs/a", "runs/b"},
                          {"Ranks", "not set", "2"}}}));
}

TEST(PageSections, WhatIsMissingIsAListUnderTheNameOfItsRun) {
  std::vector<RunRecord> runs = {named_run("<a>"), named_run("b"), named_run("c")};
  runs[0].missing = {"x < y.", "z."};
  runs[2].missing = {"w."};
  EXPECT_EQ(page::missing_section({runs.data(), 1}),
            "<ul>\n<li>x &lt; y.</li>\n<li>z.</li>\n</ul>\n");
  EXPECT_EQ(page::missing_section(runs),
            "<h3>&lt;a&gt;</h3>\n<ul>\n<li>x &lt; y.</li>\n<li>z.</li>\n</ul>\n"
            "<h3>c</h3>\n<ul>\n<li>w.</li>\n</ul>\n");
}

TEST(PageSections, EventsSayHowManyMoreThereAre) {
  RunRecord run = named_run("a");
  run.events = {{1000, "restart", "start 2"}};
  const std::string table = html::table(
      {"What happened, by step", {"Step", "Event", "More"}, {{"1,000", "restart", "start 2"}}});
  EXPECT_EQ(page::events_section({&run, 1}), table);
  run.events_left_out = 1234;
  EXPECT_EQ(page::events_section({&run, 1}), table + "<p>1,234 more are left out.</p>\n");
}

TEST(PageSections, TheNewestSampleComesFirstAndIsOpen) {
  RunRecord run = named_run("a");
  run.samples = {{1, "old"}, {1000, "<new>"}};
  const std::string samples =
      "<details open><summary>After step 1,000</summary>\n<pre>&lt;new&gt;</pre></details>\n"
      "<details><summary>After step 1</summary>\n<pre>old</pre></details>\n";
  EXPECT_EQ(page::samples_section({&run, 1}), samples);
  run.samples_left_out = 1;
  EXPECT_EQ(page::samples_section({&run, 1}), samples + "<p>1 more are in samples.jsonl.</p>\n");
}

TEST(PageSections, TheConfigOfOneRunBeginsWithTheValuesThatWereSet) {
  RunRecord run = named_run("a");
  run.config = {{"seed", "1", "default"}, {"name", "n", "a.txtpb:1:1"}, {"x", "y", ""}};
  EXPECT_EQ(
      page::config_section({&run, 1}),
      html::table({"Values that were set",
                   {"Field", "Value", "Origin"},
                   {{"name", "n", "a.txtpb:1:1"}, {"x", "y", "not known"}}}) +
          "<details><summary>All 3 values</summary>\n" +
          html::table(
              {"All values, with their origins",
               {"Field", "Value", "Origin"},
               {{"seed", "1", "default"}, {"name", "n", "a.txtpb:1:1"}, {"x", "y", "not known"}}}) +
          "</details>\n");
  run.config = {{"seed", "1", "default"}};
  EXPECT_THAT(page::config_section({&run, 1}), testing::StartsWith("<details>"));
}

TEST(PageSections, EqualConfigsAndMachinesAreSaidToBeEqual) {
  std::vector<RunRecord> runs = {named_run("a"), named_run("b")};
  for (RunRecord& run : runs) {
    run.config = {{"seed", "1", "default"}};
    run.environment = {{"host", "h"}};
  }
  const std::string equal = "<p>Nothing differs between the runs.</p>\n";
  EXPECT_THAT(page::config_section(runs), testing::StartsWith(equal));
  EXPECT_THAT(page::config_section(runs), Not(HasSubstr("Values that were set")));
  EXPECT_EQ(page::machine_section(runs),
            equal + "<details><summary>Everything</summary>\n" +
                html::table(
                    {"Machine, program and libraries", {"Name", "a", "b"}, {{"host", "h", "h"}}}) +
                "</details>\n");
  EXPECT_EQ(page::machine_section({runs.data(), 1}),
            html::table({"Machine, program and libraries", {"Name", "a"}, {{"host", "h"}}}));
}

TEST(PageSections, CommunicationHasItsPictureBucketsAndStep) {
  RunRecord run = named_run("a");
  run.overlap.facts = {{"step_ms", "12"}};
  const std::string facts = html::table({"The step", {"Name", "Value"}, {{"step_ms", "12"}}});
  EXPECT_EQ(page::overlap_section({&run, 1}), facts);
  run.overlap.picture = "<svg/>";
  run.overlap.buckets = {{"1", "a to b"}};
  EXPECT_EQ(page::overlap_section({&run, 1}),
            "<img class=\"picture\" alt=\"Backward and the transfers of its buckets over a median "
            "step; the table has the numbers\" src=\"data:image/svg+xml;base64," +
                html::base64("<svg/>") + "\">\n" +
                html::table({"Buckets of gradients in the median step",
                             {"Bucket", "Parameters", "Bytes", "Ready, ms", "Launched, ms",
                              "Done, ms", "Exposed, ms", "Cause"},
                             {{"1", "a to b"}}}) +
                facts);
}

TEST(PageSections, ARunIsRepeatedByTheCommandsThatStartedIt) {
  RunRecord run = named_run("a");
  run.command_line = {"lockstep", "train", "a b.txtpb"};
  EXPECT_EQ(page::repeat_section({&run, 1}),
            "<p>As it was started:</p>\n<pre>lockstep train &#39;a b.txtpb&#39;</pre>\n"
            "<p>From its config, for the same weights bit for bit:</p>\n"
            "<pre>lockstep train runs/a/config.txtpb</pre>\n");
  run.ranks = 2;
  run.working_directory = "/tmp";
  EXPECT_EQ(page::repeat_section({&run, 1}),
            "<p>As each of its ranks was started:</p>\n"
            "<pre>cd /tmp\nlockstep train &#39;a b.txtpb&#39;</pre>\n"
            "<p>From its config, for the same weights bit for bit:</p>\n"
            "<pre>lockstep launch -np 2 runs/a/config.txtpb</pre>\n");
}

}  // namespace
}  // namespace lockstep::train
