// What a browser makes of a page, where Chromium is installed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <regex>

#include "core/base/shell_text.h"
#include "tests/core/base/temporary_directory.h"
#include "train/page/assets.h"
#include "train/page/run_page.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;
using testing::Not;

class BrowserTest : public testing::Test {
 protected:
  void SetUp() override {
    if (page_assets::plot_program().empty()) GTEST_SKIP() << "built without dygraphs";
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
      if (std::system((std::string("command -v ") + name + " > /dev/null").c_str()) == 0) {
        browser_ = name;
      }
    }
    if (browser_.empty()) GTEST_SKIP() << "no Chromium";
  }

  /// The document after its programs, and `reader` after them, have run; expects that nothing was
  /// said on the console.
  std::string opened(std::span<const RunRecord> runs, const std::string& options = "",
                     const std::string& reader = "") {
    std::string page = run_page(runs);
    std::smatch nonce;
    EXPECT_TRUE(std::regex_search(page, nonce, std::regex("'nonce-(\\w+)'")));
    const std::string script = "<script nonce=\"" + nonce[1].str() + "\">\n" + reader + "</script>";
    if (!reader.empty()) page.insert(page.rfind("</body>"), script);
    put_file(folder_ / "page.html", page);
    const std::string command =
        "cd " + shell_text({folder_.path().string()}) + " && timeout 100 " + browser_ +
        " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run"
        " --user-data-dir=profile --enable-logging=stderr --virtual-time-budget=10000 " +
        options + " --dump-dom page.html > dom 2> log";
    EXPECT_EQ(std::system(command.c_str()), 0) << file_content(folder_ / "log");
    EXPECT_THAT(file_content(folder_ / "log"), Not(HasSubstr("CONSOLE")));
    return file_content(folder_ / "dom");
  }
  /// A run of `steps` steps whose loss has a peak and a trough among them.
  static RunRecord run_of(const std::string& name, int64_t steps) {
    RunRecord run;
    run.name = name;
    run.steps = steps;
    run.tokens_per_step = 100;
    const RunRecordOptions options = page_options(1);
    StepSeries& loss = run.series.try_emplace("loss", options.points).first->second;
    StepSeries& wall = run.series.try_emplace("wall_s", options.points).first->second;
    for (int64_t step = 1; step <= steps; ++step) {
      const double ordinary = 3 + std::sin(static_cast<double>(step)) / 4;
      loss.add(step, step == steps / 3 ? 40.5 : step == steps / 2 ? 0.25 : ordinary);
      wall.add(step, static_cast<double>(step) * 0.2);
    }
    run.events = {{steps / 4, "checkpoint", ""}, {steps / 2, "restart", "<b>rank 1</b>"}};
    return run;
  }

  TemporaryDirectory folder_;
  std::string browser_;
};

TEST_F(BrowserTest, CurvesAreDrawnWithTheirExtremesAmongAHundredThousandSteps) {
  const RunRecord run = run_of("a", 100'000);
  const std::string document = opened({&run, 1});
  EXPECT_THAT(document, HasSubstr("aria-label=\"Loss: from 0.25 nats to 40.5 nats\""));
  EXPECT_THAT(document, HasSubstr("aria-valuemin=\"1\" aria-valuemax=\"100000\""));
  EXPECT_THAT(document, HasSubstr("<canvas"));
  // Its labels of the axes, which the library makes after it has drawn.
  EXPECT_THAT(document, HasSubstr("dygraph-axis-label-x"));
  EXPECT_THAT(document, HasSubstr("id=\"problem\" role=\"alert\"></p>"));
}

TEST_F(BrowserTest, SeveralRunsLieOverEachOther) {
  const std::vector<RunRecord> runs = {run_of("first", 50), run_of("first", 80), run_of("<i>", 60)};
  const std::string document = opened(runs);
  const std::regex figure("<figure>");
  EXPECT_EQ(std::distance(std::sregex_iterator(document.begin(), document.end(), figure), {}), 1);
  EXPECT_THAT(document, HasSubstr("&lt;i&gt; training"));
  EXPECT_THAT(document, HasSubstr("<legend>Runs</legend>"));
}

TEST_F(BrowserTest, TheThemeIsThatOfTheReader) {
  const RunRecord run = run_of("a", 20);
  EXPECT_THAT(opened({&run, 1}), HasSubstr("Dark theme</button>"));
  EXPECT_THAT(opened({&run, 1}, "--blink-settings=preferredColorScheme=0"),
              HasSubstr("Light theme</button>"));
}

TEST_F(BrowserTest, ChartsFitAPhone) {
  const RunRecord run = run_of("a", 20);
  const std::string document = opened({&run, 1}, "--window-size=500,900");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(document, found, std::regex("<canvas width=\"(\\d+)\"")));
  EXPECT_LE(std::stoi(found[1]), 500);
}

/// What a reader does, for `opened`: keys on the first chart, clicks, and answers that are told in
/// the document's title.
constexpr const char* kReader = R"(
const plot = document.querySelector('.chart');
const press = (key) => plot.dispatchEvent(new KeyboardEvent('keydown', {key, cancelable: true}));
const value = () => plot.getAttribute('aria-valuetext');
const marks = () => [...document.querySelectorAll('.dygraph-axis-label-x')].map((mark) => mark.textContent);
const click = (selector) => document.querySelector(selector).click();
const told = [];
)";

TEST_F(BrowserTest, KeysReadTheValuesOfTheSteps) {
  RunRecord run = run_of("a", 20);
  run.events = {{2, "checkpoint", ""}};
  const std::string document = opened({&run, 1}, "", std::string(kReader) + R"(
for (const key of ['Home', 'ArrowRight', 'End', 'ArrowLeft']) {
  press(key);
  told.push(value());
}
document.title = told.join('|');
)");
  EXPECT_THAT(document, HasSubstr("<title>Step 1: training 3.2104 nats|"
                                  "Step 2: training 3.2273 nats; checkpoint|"
                                  "Step 20: training 3.2282 nats|"
                                  "Step 19: training 3.0375 nats</title>"));
}

TEST_F(BrowserTest, ZoomAxisThemeAndRunsAreTheReadersChoice) {
  const std::vector<RunRecord> runs = {run_of("a", 400), run_of("b", 400)};
  const std::string document = opened(runs, "", std::string(kReader) + R"(
const whole = marks().join();
press('+');
told.push(marks().join() !== whole ? 'zoomed' : 'not zoomed');
press('0');
told.push(marks().join() === whole ? 'back' : 'not back');
click('input[value=tokens]');
told.push(marks().at(-1));
click('input[value=steps]');
click('input[type=checkbox]');
press('Home');
told.push(value());
click('#theme');
told.push(document.documentElement.dataset.theme);
document.title = told.join('|');
)");
  EXPECT_THAT(document, HasSubstr("<title>zoomed|back|40k|Step 1: b training 3.2104 nats|dark<"));
}

TEST_F(BrowserTest, RunsWithOneStepOrNoneAreNoError) {
  const RunRecord one = run_of("one", 1);
  EXPECT_THAT(opened({&one, 1}), HasSubstr("aria-valuemax=\"1\""));
  RunRecord none;
  none.name = "none";
  EXPECT_THAT(opened({&none, 1}), HasSubstr("<h1>Run none</h1>"));
}

TEST_F(BrowserTest, MarkupOfARunBecomesNoElement) {
  RunRecord run = run_of("</script><u>name</u>", 20);
  run.samples = {{1, "</pre><u>sample</u><script>document.title='taken'</script>"}};
  run.config = {{"<u>path</u>", "\"<u>value</u>\"", "<u>origin</u>"}};
  run.events.push_back({3, "<u>kind</u>", "<u>text</u>"});
  const std::string document = opened({&run, 1});
  EXPECT_THAT(document, Not(HasSubstr("<u>")));
  EXPECT_THAT(document, Not(HasSubstr("<title>taken")));
}

}  // namespace
}  // namespace lockstep::train
