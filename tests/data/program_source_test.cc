// Programs that make sequences: some lines of a shell, and scripts with python/lockstep/data.py.

#include "data/program_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/base/files/atomic_file.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A program that begins as it should, and then does `rest` for each request.
std::string shell(const std::string& rest) {
  return "read -r begin; echo '{\"identity\": \"shell\"}'; while read -r request; do " + rest +
         "; done";
}
/// Answers with the inputs 1, 2 and the targets 2, -100.
const char* const kTwo =
    "echo '{\"values\": 4}'; printf '\\1\\0\\0\\0\\2\\0\\0\\0\\2\\0\\0\\0\\234\\377\\377\\377'";

ProgramSourceOptions options(const std::string& command) {
  return {.command = command, .vocabulary = 5, .seed = 7, .sequences_per_step = 3, .length = 2};
}

struct Answered {
  std::vector<int64_t> inputs, targets;
};
Answered ask_for(const TokenSource& source, int64_t step, int64_t index, size_t length = 2) {
  Answered row{std::vector<int64_t>(length), std::vector<int64_t>(length)};
  source.sequence(step, index, row.inputs, row.targets);
  return row;
}

TEST(ProgramSource, GivesTheNumbersOfTheAnswers) {
  const ProgramSource source(options(shell(kTwo)));
  const Answered row = ask_for(source, 1, 0);
  EXPECT_THAT(row.inputs, ElementsAre(1, 2));
  EXPECT_THAT(row.targets, ElementsAre(2, kIgnoredTarget));
  Answered window = row;
  EXPECT_EQ(source.validation_window(0, window.inputs, window.targets), 1);
}

TEST(ProgramSource, TellsTheProgramWhatIsWanted) {
  const TemporaryDirectory folder;
  const std::string log = folder.path() / "log";
  const ProgramSource source(options(
      "read -r begin; echo \"$begin\" > " + log +
      "; echo '{\"identity\": \"a\"}'; read -r next; echo \"$next\" >> " + log + "; " + kTwo));
  (void)ask_for(source, 4, 2);
  EXPECT_EQ(file_content(log),
            "{\"begin\":{\"length\":2,\"protocol\":1,\"seed\":7,\"sequences_per_step\":3,"
            "\"vocabulary\":5}}\n{\"sequence\":{\"index\":2,\"length\":2,\"step\":4}}\n");
}

TEST(ProgramSource, ItsHashIsThatOfTheIdentity) {
  const auto with = [](const std::string& identity) {
    return ProgramSource(options("read -r begin; echo '{\"identity\": \"" + identity + "\"}'"))
        .fingerprint();
  };
  EXPECT_EQ(with("a"), with("a"));
  EXPECT_NE(with("a"), with("b"));
}

TEST(ProgramSource, AsksForTheNumberOfHeldOutSequencesOnce) {
  const ProgramSource source(
      options("read -r begin; echo '{\"identity\": \"a\"}'; read -r once; "
              "echo '{\"windows\": 6}'"));
  EXPECT_EQ(source.validation_windows(2), 6);
  EXPECT_EQ(source.validation_windows(2), 6);
}

TEST(ProgramSource, IsAskedByManyThreads) {
  const ProgramSource source(options(shell(kTwo)));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int step = 0; step < 20; ++step) {
        EXPECT_THAT(ask_for(source, step, 0).inputs, ElementsAre(1, 2));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ProgramSource, WrongAnswersAreErrorsThatNameTheRequest) {
  const auto says = [](const std::string& rest, const std::string& text) {
    const ProgramSource source(options(shell(rest)));
    expect_error<DataError>([&] { (void)ask_for(source, 3, 1); }, "[data] the program `read", text);
  };
  const std::string asked = "asked {\"sequence\":{\"index\":1,\"length\":2,\"step\":3}}: ";
  says("echo hello", asked + "expected a line of JSON, got \"hello\"");
  says("echo '[1]'", asked + "expected an object, got [1]");
  says("echo '{\"error\": \"KeyError: 3 (my_data.py:9)\"}'", asked + "KeyError: 3 (my_data.py:9).");
  says("echo '{}'", "answered {}: expected \"values\" with a whole number");
  says("echo '{\"values\": 3}'", asked + "expected 4 numbers, inputs and then targets, got 3");
  says("echo '{\"values\": 4}'; printf '\\5\\0\\0\\0\\2\\0\\0\\0\\2\\0\\0\\0\\2\\0\\0\\0'",
       asked + "input 0 is 5: expected one in [0, 5).");
  says("echo '{\"values\": 4}'; printf '\\234\\377\\377\\377\\2\\0\\0\\0\\2\\0\\0\\0\\2\\0\\0\\0'",
       asked + "input 0 is -100: expected one in [0, 5).");
  says("echo '{\"values\": 4}'; printf '\\1\\0\\0\\0\\2\\0\\0\\0\\2\\0\\0\\0\\233\\377\\377\\377'",
       asked + "target 1 is -101: expected one in [0, 5), or -100 for one that does not count.");
  says("head -c 70000 /dev/zero", "its line is longer than 64 KiB");
}

TEST(ProgramSource, AProgramThatEndsIsAnErrorWithItsStatus) {
  expect_error<DataError>([] { ProgramSource(options("exit 3")); },
                          "`exit 3` does not answer: it has ended with status 3.");
  expect_error<DataError>([] { ProgramSource(options("no-such-program-at-all 2> /dev/null")); },
                          "it has ended with status 127");
  expect_error<DataError>([] { ProgramSource(options("kill -9 $$")); },
                          "it was ended by signal 9 (Killed)");
  expect_error<DataError>([] { ProgramSource(options("read -r begin; echo '{}'")); },
                          "answered {}: expected \"identity\"");
  const ProgramSource source(options(shell("echo '{\"values\": 4}'; exit 1")));
  expect_error<DataError>([&] { (void)ask_for(source, 1, 0); }, "it has ended with status 1");
}

TEST(ProgramSource, AnAnswerThatDoesNotComeInTimeIsAnError) {
  ProgramSourceOptions slow = options("sleep 600");
  slow.timeout = std::chrono::milliseconds(50);
  expect_error<DataError>([&] { ProgramSource source(slow); },
                          "`sleep 600` does not answer: it has not within 0.05 s.");
}

TEST(ProgramSource, TheProgramEndsWithIt) {
  const TemporaryDirectory folder;
  const std::string log = folder.path() / "pid";
  std::string process;
  {
    const ProgramSource source(
        options("trap '' HUP TERM; echo $$ > " + log + "; " + shell(kTwo) + "; sleep 600 & wait"));
    (void)ask_for(source, 1, 0);
    process = file_content(log);
  }
  EXPECT_NE(::kill(static_cast<pid_t>(std::stoi(process)), 0), 0);
}

class PythonSource : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v python3 > /dev/null") != 0) GTEST_SKIP() << "no python3";
  }

  /// The command of a script with this class Source.
  std::string script(const std::string& source) const {
    const std::string file = folder_.path() / "my_data.py";
    write_text(file, "import sys\nsys.path.insert(0, '" LOCKSTEP_SOURCE_DIR
                     "/python/lockstep')\nfrom data import serve\nclass Source:\n" +
                         source + "serve(Source())\n");
    return "python3 " + file;
  }

  TemporaryDirectory folder_;
};

TEST_F(PythonSource, MakesSequencesOfItsArguments) {
  const ProgramSource source(
      options(script("  identity = 'numbers'\n"
                     "  def begin(self, info): self.modulus = info.vocabulary\n"
                     "  def sequence(self, step, index, length):\n"
                     "    print('not an answer')\n"
                     "    return [(step + index + i) % self.modulus for i in range(length + 1)]\n"
                     "  def held_out_windows(self, length): return 2\n"
                     "  def held_out(self, index, length): return [index] * length, [1] * (length "
                     "- 1) + [-100]\n")));
  const Answered row = ask_for(source, 3, 1, 4);
  EXPECT_THAT(row.inputs, ElementsAre(4, 0, 1, 2));
  EXPECT_THAT(row.targets, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(source.validation_windows(4), 2);
  Answered window = row;
  EXPECT_EQ(source.validation_window(1, window.inputs, window.targets), 3);
  EXPECT_THAT(window.inputs, ElementsAre(1, 1, 1, 1));
}

TEST_F(PythonSource, AnExceptionIsAnErrorWithItsPlaceAndTheNextAnswerIsWhole) {
  const ProgramSource source(
      options(script("  identity = 'some'\n"
                     "  def sequence(self, step, index, length):\n"
                     "    if step == 2: raise KeyError('no such')\n"
                     "    return [1] * (length + (step != 4))\n")));
  EXPECT_EQ(source.validation_windows(2), 0);
  expect_error<DataError>([&] { (void)ask_for(source, 2, 0); },
                          "KeyError: 'no such' (my_data.py:7).");
  EXPECT_THAT(ask_for(source, 3, 0).inputs, ElementsAre(1, 1));
  expect_error<DataError>([&] { (void)ask_for(source, 4, 0); },
                          "ValueError: expected 3 tokens, or 2 inputs and as many targets, got 1");
}

TEST_F(PythonSource, DocumentsThatAreReadInOrderGiveTheSameSequencesInAnyOrder) {
  const std::string file = folder_.path() / "stream.py";
  write_text(file, "import sys\nsys.path.insert(0, '" LOCKSTEP_SOURCE_DIR
                   "/python/lockstep')\nfrom data import Stream, serve\n"
                   "def documents(epoch): return ([10 + i] * 3 for i in range(20))\n"
                   "serve(Stream(documents, identity='twenty', end_of_text=1, shuffle_buffer=8, "
                   "held_out=2))\n");
  ProgramSourceOptions asked = options("python3 " + file);
  asked.vocabulary = 100;
  asked.sequences_per_step = 4;
  asked.length = 5;
  const ProgramSource source(asked), resumed(asked);
  std::vector<std::vector<int64_t>> rows;
  std::map<int64_t, int> times;  // that each token was trained on
  for (int64_t step = 0; step < 18; ++step) {
    for (int64_t index = 0; index < 4; ++index) {
      rows.push_back(ask_for(source, step, index, 5).targets);
      for (const int64_t token : rows.back()) ++times[token];
    }
  }
  for (int64_t step = 17; step >= 0; step -= 3) {
    for (const int64_t index : {3, 0, 2}) {
      EXPECT_EQ(ask_for(resumed, step, index, 5).targets,
                rows[static_cast<size_t>(step * 4 + index)]);
    }
  }
  // 18 * 4 * 5 tokens are five epochs of 18 documents, which have four each.
  EXPECT_EQ(times.size(), 19U);
  for (const auto& [token, count] : times) {
    if (token == 1) continue;
    EXPECT_EQ(count, 15) << token;
  }
  EXPECT_FALSE(times.contains(10) || times.contains(11));
  EXPECT_NE(std::vector(rows.begin(), rows.begin() + 14),
            std::vector(rows.begin() + 14, rows.begin() + 28));
  ASSERT_EQ(source.validation_windows(5), 2);
  Answered window = ask_for(source, 0, 0, 5);
  EXPECT_EQ(source.validation_window(1, window.inputs, window.targets), 2);
  EXPECT_THAT(window.inputs, ElementsAre(11, 11, 0, 0, 0));
}

}  // namespace
}  // namespace lockstep::train
