#include "train/report/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

/// A FILE* in memory.
class Capture {
 public:
  Capture() : file_(open_memstream(&data_, &size_)) {}
  ~Capture() {
    std::fclose(file_);
    std::free(data_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return {data_, size_};
  }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
  std::FILE* file_;
};

/// A pseudo-terminal.
class Terminal {
 public:
  Terminal() : master_(posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ >= 0 && grantpt(master_) == 0 && unlockpt(master_) == 0) {
      const int terminal = open(ptsname(master_), O_RDWR | O_NOCTTY);
      if (terminal >= 0) file_ = fdopen(terminal, "w");
    }
  }
  ~Terminal() {
    if (file_ != nullptr) std::fclose(file_);
    if (master_ >= 0) close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  std::FILE* file() { return file_; }
  void resize(unsigned short columns) {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    EXPECT_EQ(ioctl(master_, TIOCSWINSZ, &size), 0);
  }
  /// What was written since the last call; there must be something.
  std::string read() {
    char bytes[4096];
    const ssize_t size = ::read(master_, bytes, sizeof(bytes));
    return size > 0 ? std::string(bytes, static_cast<size_t>(size)) : "";
  }

 private:
  int master_;
  std::FILE* file_ = nullptr;
};

using Settings = std::map<std::string, std::optional<std::string>>;

/// Sets or unsets (nullopt) environment variables while alive, then restores them.
class Variables {
 public:
  explicit Variables(const Settings& values) {
    for (const auto& [name, value] : values) {
      const char* old = std::getenv(name.c_str());
      old_[name] = old == nullptr ? std::nullopt : std::optional<std::string>(old);
      put(name, value);
    }
  }
  ~Variables() {
    for (const auto& [name, value] : old_) put(name, value);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  static void put(const std::string& name, const std::optional<std::string>& value) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
  Settings old_;
};

StepReport shown_step(int64_t step) { return {step, 2.34567, 0.81249, 3e-4, 50, 40960, 432013312}; }

TEST(Progress, PlainLinesAreTheFirstEveryTenthAndTheLast) {
  Capture capture;
  {
    Progress progress(capture.file(), {}, {.total_steps = 125});
    for (int64_t step = 1; step <= 125; ++step) progress.step(shown_step(step));
    progress.note("done");
  }
  const std::string text = capture.text();
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "step   1/125 | loss 2.3457 | grad norm 0.812 | lr 3.000e-04 | 50.0 ms | 40960 tok/s | "
            "412.0 MiB | ETA 6 s");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 12 + 1 + 1);
  EXPECT_TRUE(says(text, "\nstep 120/125 |"));
  EXPECT_TRUE(says(text, "| ETA 0 s\ndone\n"));
  EXPECT_EQ(text.find('\r'), text.npos);
  EXPECT_EQ(text.find('\x1b'), text.npos);
}

TEST(Progress, TheBarIsRedrawnInPlaceAndEndsItsLine) {
  Capture capture;
  {
    Progress progress(capture.file(), {.bar = true, .columns = 160},
                      {.total_steps = 200, .redraw_interval = std::chrono::milliseconds(0)});
    progress.step(shown_step(50));
    progress.step(shown_step(100));
  }
  EXPECT_EQ(capture.text(),
            "\r\x1b[K 25% [#######-----------------------] 50/200 | loss 2.3457 | 40960 tok/s | "
            "ETA 8 s | grad norm 0.812 | 50.0 ms | lr 3.000e-04 | 412.0 MiB"
            "\r\x1b[K 50% [###############---------------] 100/200 | loss 2.3457 | 40960 tok/s | "
            "ETA 5 s | grad norm 0.812 | 50.0 ms | lr 3.000e-04 | 412.0 MiB\n");
}

/// What a terminal of so many columns shows of step 12,345 of 100,000.
std::string drawn(int columns, bool colour = false) {
  Capture capture;
  Progress progress(capture.file(), {.bar = true, .colour = colour, .columns = columns},
                    {.total_steps = 100000});
  progress.step(shown_step(12345));
  return capture.text().substr(4);  // without the erasing sequence
}

TEST(Progress, EightyColumnsHoldABarStepLossSpeedAndTime) {
  EXPECT_EQ(drawn(80),
            " 12% [##---------------] 12345/100000 | loss 2.3457 | 40960 tok/s | ETA 1:13:03");
  EXPECT_TRUE(says(drawn(80, true), "[\x1b[32m##\x1b[0m---"));
}

TEST(Progress, NarrowTerminalsShowLessAndWholeNumbers) {
  EXPECT_EQ(drawn(70), " 12% 12345/100000 | loss 2.3457 | 40960 tok/s | ETA 1:13:03");
  EXPECT_EQ(drawn(57), "12345/100000 | loss 2.3457 | 40960 tok/s | ETA 1:13:03");
  EXPECT_EQ(drawn(50), "12345/100000 | loss 2.3457 | ETA 1:13:03");
  EXPECT_EQ(drawn(30), "12345/100000 | loss 2.3457");
  EXPECT_EQ(drawn(20), "12345/100000");
  EXPECT_EQ(drawn(12), "");
  for (int columns = 1; columns < 200; ++columns) {
    for (const bool colour : {false, true}) {
      const size_t escapes = drawn(columns, colour).find("\x1b") == std::string::npos ? 0 : 9;
      EXPECT_LE(drawn(columns, colour).size() - escapes, static_cast<size_t>(columns) - 1);
    }
  }
}

TEST(Progress, ANoteStandsAboveTheBar) {
  Capture capture;
  {
    Progress progress(capture.file(), {.bar = true, .columns = 20}, {.total_steps = 4});
    progress.step(shown_step(1));
    progress.note("val 2.1");
  }
  const std::string bar = "1/4 | loss 2.3457";
  EXPECT_EQ(capture.text(), "\r\x1b[K" + bar + "\r\x1b[Kval 2.1\n\r\x1b[K" + bar + "\n");
}

TEST(Progress, AResizedTerminalGetsABarOfItsNewWidthAndNoRemains) {
  Terminal terminal;
  ASSERT_NE(terminal.file(), nullptr);
  const Variables unset(Settings{{"COLUMNS", {}}, {"NO_COLOR", "1"}, {"TERM", "xterm"}});
  terminal.resize(80);
  Progress progress(terminal.file(), ProgressStyle::of(terminal.file()),
                    {.total_steps = 100000, .redraw_interval = std::chrono::milliseconds(0)});
  progress.step(shown_step(12345));
  const std::string wide = terminal.read();
  EXPECT_TRUE(says(wide, "[##---------------] 12345/100000")) << wide;
  terminal.resize(40);
  progress.step(shown_step(12346));
  // The old bar of 75 columns takes two lines now.
  EXPECT_EQ(terminal.read(), "\x1b[1A\r\x1b[J12346/100000 | loss 2.3457");
  terminal.resize(60);
  progress.step(shown_step(12347));
  EXPECT_EQ(terminal.read(), "\r\x1b[K 12% 12347/100000 | loss 2.3457 | 40960 tok/s | ETA 1:13:03");
}

TEST(Progress, TheBarIsDrawnSeldomButTheLastStepAlways) {
  Capture capture;
  {
    Progress progress(capture.file(), {.bar = true, .columns = 80},
                      {.total_steps = 1000, .redraw_interval = std::chrono::hours(1)});
    for (int64_t step = 1; step <= 1000; ++step) progress.step(shown_step(step));
  }
  const std::string text = capture.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 2);
  EXPECT_TRUE(says(text, "1000/1000"));
}

TEST(Progress, TheExpectedTimeForgetsTheFirstStep) {
  Capture capture;
  Progress progress(capture.file(), {}, {.total_steps = 102, .log_every = 2});
  StepReport slow = shown_step(1);
  slow.step_ms = 60000;
  progress.step(slow);
  progress.step(shown_step(2));
  EXPECT_TRUE(says(capture.text(), "step   2/102"));
  EXPECT_TRUE(says(capture.text(), "ETA 5 s"));
}

TEST(Progress, NanoGptsIterationsCountFromZeroAndHaveNoBar) {
  Capture capture;
  {
    Progress progress(capture.file(), {.bar = true},
                      {.total_steps = 21, .log_every = 10, .format = LogFormat::kNanoGpt});
    for (int64_t step = 1; step <= 21; ++step) progress.step(shown_step(step));
    progress.evaluation({.step = 21, .train_loss = 2.34567, .loss = 2});
  }
  EXPECT_EQ(capture.text(),
            "iter 0: loss 2.3457, time 50.00ms, mfu -100.00%\n"
            "iter 10: loss 2.3457, time 50.00ms, mfu -100.00%\n"
            "iter 20: loss 2.3457, time 50.00ms, mfu -100.00%\n"
            "step 21: train loss 2.3457, val loss 2.0000\n");
}

TEST(Progress, LlmCsLinesKnowHowUnusualAStepIs) {
  Capture capture;
  {
    Progress progress(capture.file(), {},
                      {.total_steps = 128, .log_every = 1, .format = LogFormat::kLlmC});
    for (int64_t step = 1; step <= 128; ++step) {
      StepReport one = shown_step(step);
      one.loss = step < 128 ? 2 : 3;
      progress.step(one);
    }
  }
  EXPECT_TRUE(says(capture.text(), "step  127/128 | loss 2.000000 (+nanz)|"));
  EXPECT_TRUE(
      says(capture.text(), "step  128/128 | loss 3.000000 (+11.27z)| norm 0.8125 (+0.00z)|"));
}

TEST(Progress, AStreamThatCannotBeWrittenDoesNotStopTraining) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  EXPECT_NO_THROW({
    Progress progress(full, {}, {.total_steps = 2});
    progress.step(shown_step(1));
    progress.note("x");
  });
  std::fclose(full);
}

TEST(ProgressStyle, ATerminalGetsABarUnlessItIsDumb) {
  Terminal terminal;
  ASSERT_NE(terminal.file(), nullptr);
  const Variables none(Settings{{"NO_COLOR", {}}, {"COLUMNS", {}}, {"TERM", "xterm"}});
  EXPECT_TRUE(ProgressStyle::of(terminal.file()).bar);
  EXPECT_TRUE(ProgressStyle::of(terminal.file()).colour);
  EXPECT_EQ(ProgressStyle::of(terminal.file()).columns, 80);
  {
    const Variables dumb(Settings{{"TERM", "dumb"}});
    EXPECT_FALSE(ProgressStyle::of(terminal.file()).bar);
  }
  {
    const Variables unset(Settings{{"TERM", {}}});
    EXPECT_FALSE(ProgressStyle::of(terminal.file()).bar);
  }
  {
    const Variables no_colour(Settings{{"NO_COLOR", "1"}, {"COLUMNS", "132"}});
    EXPECT_TRUE(ProgressStyle::of(terminal.file()).bar);
    EXPECT_FALSE(ProgressStyle::of(terminal.file()).colour);
    EXPECT_EQ(ProgressStyle::of(terminal.file()).columns, 132);
  }
  for (const char* columns : {"0", "-3", "12x", ""}) {
    const Variables bad(Settings{{"COLUMNS", columns}});
    EXPECT_EQ(ProgressStyle::of(terminal.file()).columns, 80) << columns;
  }
}

TEST(ProgressStyle, AFileGetsPlainLines) {
  const Variables xterm(Settings{{"TERM", "xterm"}});
  const TemporaryDirectory folder;
  std::FILE* file = std::fopen((folder / "log").c_str(), "w");
  ASSERT_NE(file, nullptr);
  EXPECT_FALSE(ProgressStyle::of(file).bar);
  EXPECT_FALSE(ProgressStyle::of(file).colour);
  std::fclose(file);
}

TEST(Format, DurationsAndBytes) {
  EXPECT_EQ(format_duration(0.4), "0 s");
  EXPECT_EQ(format_duration(59.6), "1:00");
  EXPECT_EQ(format_duration(187), "3:07");
  EXPECT_EQ(format_duration(7387), "2:03:07");
  EXPECT_EQ(format_duration(-1), "?");
  EXPECT_EQ(format_duration(std::nan("")), "?");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(3277), "3.2 KiB");
  EXPECT_EQ(format_bytes(1048575), "1.0 MiB");
  EXPECT_EQ(format_bytes(1610612736), "1.5 GiB");
}

}  // namespace
}  // namespace lockstep::train
