#include "train/page/run_page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <regex>

#include "tests/core/base/temporary_directory.h"
#include "train/page/assets.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kMarkup = "</script></title></pre><img src=x onerror=alert(1)>\"'&<!--";

RunRecord small_run(const std::string& name) {
  RunRecord run;
  run.name = name;
  run.path = "runs/" + name;
  run.steps = 3;
  for (const char* member : {"loss", "lr", "tokens_per_s", "wall_s"}) {
    StepSeries& series = run.series.try_emplace(member).first->second;
    for (int64_t step = 1; step <= 3; ++step) series.add(step, 3.0 / static_cast<double>(step));
  }
  return run;
}

/// A run each of whose texts is markup.
RunRecord hostile_run() {
  RunRecord run = small_run(kMarkup);
  run.path = kMarkup;
  run.events = {{1, kMarkup, kMarkup}};
  run.samples = {{1, kMarkup}};
  run.config = {{kMarkup, kMarkup, kMarkup}};
  run.environment = {{kMarkup, kMarkup}, {"start_time", kMarkup}, {"commit", kMarkup}};
  run.command_line = {kMarkup, kMarkup};
  run.working_directory = kMarkup;
  run.ended = kMarkup;
  run.overlap.facts = {{kMarkup, kMarkup}};
  run.overlap.buckets = {{kMarkup, kMarkup}};
  run.overlap.picture = kMarkup;
  run.missing = {kMarkup};
  return run;
}

std::string page_of(std::vector<RunRecord> runs) { return run_page(runs); }

TEST(RunPage, MarkupInAnyTextOfARunIsEscaped) {
  for (const std::vector<RunRecord>& runs :
       {std::vector{hostile_run()}, std::vector{hostile_run(), small_run("b")}}) {
    const std::string page = run_page(runs);
    EXPECT_THAT(page, Not(HasSubstr("<img src=x")));
    EXPECT_THAT(page, Not(HasSubstr("<!--")));
    EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;/title&gt;"));
    // The page's own scripts, and no end of one that a text brought.
    const std::regex end("</script>");
    const auto ends = std::distance(std::sregex_iterator(page.begin(), page.end(), end), {});
    EXPECT_EQ(ends, page_assets::plot_program().empty() ? 2 : 3);
  }
}

TEST(RunPage, TextsMayHoldAnyBytes) {
  RunRecord run = small_run("a");
  run.samples = {{1, std::string("\xff\x00\x1b[31m\n\xf0\x9f\x98\x80", 12)}};
  const std::string page = page_of({run});
  EXPECT_EQ(page.find('\x1b'), page.npos);
  EXPECT_EQ(page.find('\0'), page.npos);
  EXPECT_EQ(page.find('\xff'), page.npos);
  EXPECT_THAT(page, HasSubstr("\xf0\x9f\x98\x80"));
}

TEST(RunPage, TheSameRunGivesTheSameBytes) {
  EXPECT_EQ(page_of({small_run("a")}), page_of({small_run("a")}));
}

TEST(RunPage, AsksForNothingFromElsewhere) {
  const std::string page = page_of({small_run("a")});
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_EQ(page.find("sourceMappingURL"), page.npos);
  const std::regex reference("(src|href)=\"(?!#|data:)");
  EXPECT_FALSE(std::regex_search(page, reference));
}

TEST(RunPage, HasTheLicenceOfWhatItEmbeds) {
  if (page_assets::plot_program().empty()) GTEST_SKIP() << "built without dygraphs";
  EXPECT_THAT(page_of({small_run("a")}), HasSubstr("Permission is hereby granted"));
}

TEST(RunPage, ABuildWithoutThePlottingLibrarySaysSo) {
  const std::string page = page_of({small_run("a")});
  const bool told = page.find("built without the plotting library") != page.npos;
  EXPECT_EQ(told, page_assets::plot_program().empty());
}

TEST(RunPage, OfSeveralRunsConfigsAndMachinesWhatDiffersComesFirst) {
  RunRecord a = small_run("a");
  RunRecord b = small_run("b");
  a.config = {{"seed", "1", "default"}, {"train.steps", "3", "default"}};
  b.config = {{"seed", "1", "default"}, {"train.steps", "4", "--set train.steps=4"}};
  const std::string page = page_of({a, b});
  const size_t begin = page.find("Values that differ</caption>");
  ASSERT_NE(begin, page.npos);
  const std::string table = page.substr(begin, page.find("</table>", begin) - begin);
  EXPECT_THAT(table, HasSubstr("<th scope=\"row\">train.steps</th><td>3</td><td>4</td>"));
  EXPECT_THAT(table, Not(HasSubstr("seed")));
}

TEST(RunPage, ExtremesAreInATableForReadersWithoutCurves) {
  RunRecord run = small_run("a");
  run.series.find("loss")->second.add(4, 12.5);
  EXPECT_THAT(page_of({run}), HasSubstr("<th scope=\"row\">Loss, training</th>"
                                        "<td>3 nats (step 1)</td><td>1 nats (step 3)</td>"
                                        "<td>12.5 nats (step 4)</td><td>12.5 nats (step 4)</td>"));
}

TEST(RunPage, ARunWithoutStepsIsAPage) {
  RunRecord run;
  run.name = "empty";
  EXPECT_THAT(page_of({run}), HasSubstr("<h1>Run empty</h1>"));
}

TEST(RunPage, AYearOfStepsTakesLessThan5Megabytes) {
  constexpr int64_t kSteps = 1 << 20;  // more change nothing: each series has reached its bound
  RunRecord run;
  run.name = "year";
  const RunRecordOptions options = page_options(1);
  for (const char* member :
       {"loss", "val_loss", "val_bits_per_byte", "val_accuracy", "grad_norm", "lr", "tokens_per_s",
        "mfu", "step_ms", "exposed_comm_ms", "data_wait_ms", "memory_peak_bytes", "sent_bytes",
        "loss_scale", "goodput", "wall_s"}) {
    StepSeries& series = run.series.try_emplace(member, options.points).first->second;
    for (int64_t step = 1; step <= kSteps; ++step) {
      series.add(step * 30, std::sin(static_cast<double>(step * step)));
    }
  }
  run.samples.assign(options.samples,
                     {1, std::string(options.sample_bytes / options.samples, 'a')});
  run.events.assign(options.events, {1, "checkpoint", "training stood still for 0.123 s"});
  EXPECT_LT(page_of({run}).size(), 5'000'000u);
}

TEST(RunPage, ShowsTheRanksSideBySideAndNamesTheSlowest) {
  RunRecord run = small_run("a");
  EXPECT_THAT(page_of({run}), Not(HasSubstr("id=\"ranks\"")));
  run.rank_times = {.steps = 5, .ranks = {{0, 80, 0, 21, -1}, {1, 80, 20, 1, -1}}};
  const std::string page = page_of({run});
  EXPECT_THAT(page, HasSubstr("In the newest comparison rank 1 is the slowest: data, for which"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">1</th><td>80.0</td><td>not known</td>"
                              "<td>20.0</td><td>1.0</td><td>data</td>"));
}

TEST(RunPage, TellsHowTheLeavesOfAStepAreDealt) {
  RunRecord run = small_run("a");
  run.rank_times = {.steps = 5, .ranks = {{0, 80, 0, 21, -1}, {1, 160, 20, 1, -1}}};
  EXPECT_THAT(page_of({run}), Not(HasSubstr("Of the leaves of a step")));
  run.rank_leaves = {5, 3};
  EXPECT_THAT(page_of({run}), HasSubstr("Of the leaves of a step the ranks compute 5, 3."));
}

TEST(RunPage, NumbersThatNoRunHasFitIntoTheirCells) {
  RunRecord run = small_run("a");
  run.steps = int64_t{1} << 53;
  run.tokens_per_step = 9e11;
  run.series["loss"].add(4, -1e308);
  const std::string page = page_of({run});
  EXPECT_THAT(page, Not(HasSubstr("<th scope=\"row\">Tokens</th>")));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">Last training loss</th><td>-1e+308</td>"));
}

TEST(RunPage, IsNamedAfterItsRuns) {
  const auto title = [](const std::vector<RunRecord>& runs) {
    const std::string page = run_page(runs);
    const size_t begin = page.find("<title>") + 7;
    return page.substr(begin, page.find("</title>") - begin);
  };
  EXPECT_EQ(title({small_run("a")}), "Run a");
  EXPECT_EQ(title({small_run("a"), small_run("b")}), "Runs a and b");
  EXPECT_EQ(title({small_run("a"), small_run("<b>"), small_run("c")}), "Runs a, &lt;b&gt; and c");
}

TEST(RunPage, LinksToTheSectionsThatItHas) {
  RunRecord run = small_run("a");
  run.samples = {{1, "text"}};
  const std::string page = page_of({run});
  EXPECT_THAT(page, HasSubstr("<nav aria-label=\"Sections\"><ul>\n"
                              "<li><a href=\"#summary\">Summary</a></li>\n"
                              "<li><a href=\"#curves\">Curves</a></li>\n"
                              "<li><a href=\"#samples\">Samples</a></li>\n</ul></nav>"));
  EXPECT_THAT(page, HasSubstr("<section id=\"samples\" aria-labelledby=\"samples-title\">\n"
                              "<h2 id=\"samples-title\">Samples</h2>\n"));
  EXPECT_THAT(page, Not(HasSubstr("id=\"events\"")));
  EXPECT_THAT(page, HasSubstr("<p>Written by Lockstep " LOCKSTEP_VERSION ".</p>"));
}

TEST(RunPage, ItsProgramsBearANumberThatDependsOnAllOfIt) {
  const auto nonce = [](const std::string& page) {
    const size_t begin = page.find("'nonce-") + 7;
    return page.substr(begin, page.find('\'', begin) - begin);
  };
  RunRecord run = small_run("a");
  const std::string page = page_of({run});
  EXPECT_THAT(page, HasSubstr("<script nonce=\"" + nonce(page) + "\">"));
  run.series.find("loss")->second.add(4, 1);
  EXPECT_NE(nonce(page_of({run})), nonce(page));
}

TEST(RunPage, KeepsLessOfEachOfManyRuns) {
  const RunRecordOptions all;
  const RunRecordOptions one = page_options(1), three = page_options(3), many = page_options(500);
  EXPECT_EQ(one.points, size_t{1} << 14);
  EXPECT_EQ(one.samples, all.samples);
  EXPECT_EQ(one.sample_bytes, all.sample_bytes);
  EXPECT_EQ(one.events, all.events);
  EXPECT_EQ(three.points, size_t{1} << 13);
  EXPECT_EQ(three.samples, all.samples / 3);
  EXPECT_EQ(three.sample_bytes, all.sample_bytes / 3);
  EXPECT_EQ(three.events, all.events / 3);
  EXPECT_EQ(many.points, 256u);
  EXPECT_EQ(many.samples, 2u);
}

TEST(RunPage, OfARunThatEndsIsWrittenUnlessItsMetricsAreTooLong) {
  const TemporaryDirectory folder;
  const std::filesystem::path run = folder / "a";
  std::filesystem::create_directories(run);
  put_file(run / "metrics.jsonl", "{\"step\":1,\"loss\":3}\n");  // 20 bytes
  EXPECT_EQ(message_of<DataError>([&] { write_run_page(run, 19); }),
            fmt::format("[report] {0}/metrics.jsonl has 20 bytes, too many to be read at a run's "
                        "end. `lockstep report {0}` writes its page.",
                        run.string()));
  EXPECT_FALSE(std::filesystem::exists(run / "report.html"));
  write_run_page(run, 20);
  const RunRecord record = read_run(run, page_options(1));
  EXPECT_EQ(file_content(run / "report.html"), run_page({&record, 1}));
}

}  // namespace
}  // namespace lockstep::train
