#include "train/report/time_account.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class TimeAccountTest : public testing::Test {
 protected:
  using Clock = TimeAccount::Clock;

  /// A full line whose process was last seen `ago` seconds ago.
  void put_lines(double ago, const std::string& more, const std::string& begin = "\"step\":2") {
    put_file(file_,
             "{\"step\":1,\"train_s\":1,\"data_s\":0.5}\n"
             "{\"step\":2,\"train_s\":2,\"data_s\":1}\n"
             "{\"step\":3,\"train_s\":3,\"data_s\":1.5}\n" +
                 fmt::format("{{{},\"at\":{},\"wall_s\":10,\"train_s\":4,\"data_s\":2,"
                             "\"evaluation_s\":0.5,\"checkpoint_s\":0.25,\"redone_s\":1,"
                             "\"start_s\":0.5,\"restart_s\":0.75,\"starts\":2,\"restarts\":1{}}}\n",
                             begin, seconds_since_1970() - ago, more));
  }
  static double sum(const RunTimes& times) {
    double all = times.other();
    for (const double each : times.used) all += each;
    return all;
  }

  TemporaryDirectory folder_;
  RunDirectory run_ = RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kContinue);
  std::filesystem::path file_ = run_.metrics();
};

TEST_F(TimeAccountTest, ChargesTimeToWhatItWasSpentOn) {
  TimeAccount account(run_, 0, Clock::now() - 2s);
  account.spend_on_start();
  std::this_thread::sleep_for(20ms);
  account.spend_on_step(0.005, true);
  std::this_thread::sleep_for(10ms);
  account.spend_other();
  account.spend(TimeUse::kEvaluation);
  const RunTimes times = account.so_far();
  EXPECT_GE(times.of(TimeUse::kStart), 2);
  EXPECT_GE(times.of(TimeUse::kTrain), 0.015);
  EXPECT_EQ(times.of(TimeUse::kData), 0.005);
  EXPECT_LT(times.of(TimeUse::kEvaluation), 0.01);
  EXPECT_GE(times.other(), 0.01);
  EXPECT_NEAR(sum(times), times.wall, 1e-3 * times.wall);
  EXPECT_EQ(times.starts, 1);
}

TEST_F(TimeAccountTest, AStepThatUpdatedNothingIsLost) {
  TimeAccount account(run_, 0, Clock::now());
  account.spend_on_start();
  std::this_thread::sleep_for(5ms);
  account.spend_on_step(0.001, false);
  EXPECT_EQ(account.so_far().of(TimeUse::kTrain), 0);
  EXPECT_EQ(account.so_far().of(TimeUse::kData), 0);
  EXPECT_GE(account.so_far().of(TimeUse::kRedone), 0.005);
}

TEST_F(TimeAccountTest, GoesOnAfterALostProcessWithItsStepsToDoAgain) {
  put_lines(/*ago=*/5, "", "\"step\":4");
  TimeAccount account(run_, 2, Clock::now() - 1s);
  account.spend_on_start();
  const RunTimes times = account.so_far();
  EXPECT_EQ(times.starts, 3);
  EXPECT_EQ(times.restarts, 2);
  EXPECT_EQ(times.of(TimeUse::kTrain), 2);
  EXPECT_EQ(times.of(TimeUse::kData), 1);
  EXPECT_EQ(times.of(TimeUse::kRedone), 1 + 2 + 1);
  EXPECT_EQ(times.of(TimeUse::kStart), 0.5);
  // Nobody trained for four seconds, and this process began one second ago.
  EXPECT_NEAR(times.of(TimeUse::kRestart), 0.75 + 5, 0.1);
  EXPECT_NEAR(times.wall, 15, 0.1);
  EXPECT_NEAR(sum(times), times.wall, 1e-3 * times.wall);
}

TEST_F(TimeAccountTest, LeavesOutTheTimeBetweenACleanStopAndTheNextStart) {
  put_lines(/*ago=*/500, "", "\"steps\":4,\"ended\":\"stopped\"");
  std::filesystem::rename(file_, run_.goodput());
  const std::string all = file_content(run_.goodput());
  put_file(run_.goodput(), all.substr(all.find("{\"steps\"")));
  TimeAccount account(run_, 4, Clock::now() - 1s);
  account.spend_on_start();
  const RunTimes times = account.so_far();
  EXPECT_EQ(times.restarts, 1);
  EXPECT_EQ(times.of(TimeUse::kTrain), 4);
  EXPECT_NEAR(times.of(TimeUse::kStart), 1.5, 0.1);
  EXPECT_NEAR(times.wall, 11, 0.1);
}

TEST_F(TimeAccountTest, ARunThatGoesBackToItsBeginLosesAllItsSteps) {
  put_lines(/*ago=*/0, "", "\"step\":4");
  const TimeAccount account(run_, 0, Clock::now());
  EXPECT_EQ(account.so_far().of(TimeUse::kTrain), 0);
  EXPECT_EQ(account.so_far().of(TimeUse::kRedone), 1 + 4 + 2);
}

TEST_F(TimeAccountTest, ARollbackMakesTheStepsSinceTheCheckpointStepsToDoAgain) {
  TimeAccount account(run_, 0, Clock::now());
  account.spend_on_start();
  std::this_thread::sleep_for(5ms);
  account.spend_on_step(0, true);
  const double before = account.so_far().of(TimeUse::kTrain);
  account.mark(1);
  std::this_thread::sleep_for(5ms);
  account.spend_on_step(0.001, true);
  account.go_back(1);
  EXPECT_DOUBLE_EQ(account.so_far().of(TimeUse::kTrain), before);
  EXPECT_GE(account.so_far().of(TimeUse::kRedone), 0.005);
}

TEST_F(TimeAccountTest, BeginsAnewForARunWithoutAnAccount) {
  put_file(file_, "{\"step\":1,\"loss\":2}\nnothing\n{\"step\":2,\"los");
  const TimeAccount account(run_, 1, Clock::now());
  EXPECT_EQ(account.so_far().starts, 1);
}

TEST_F(TimeAccountTest, LinesHaveAllSumsAtFirstAndThenThoseThatChanged) {
  TimeAccount account(run_, 0, Clock::now());
  account.spend_on_start();
  JsonLine first;
  account.add_to(first);
  EXPECT_THAT(first.text(), HasSubstr("\"restart_s\":0,\"other_s\":"));
  EXPECT_THAT(first.text(), HasSubstr("\"starts\":1,\"restarts\":0,\"goodput\":0"));
  JsonLine second;
  account.spend(TimeUse::kEvaluation);
  account.add_to(second);
  EXPECT_THAT(second.text(), HasSubstr("\"wall_s\":"));
  EXPECT_THAT(second.text(), HasSubstr("\"train_s\":0,\"data_s\":0,\"evaluation_s\":"));
  EXPECT_THAT(second.text(), Not(HasSubstr("start_s")));
  JsonLine after_a_save;
  account.mark(1);
  account.add_to(after_a_save);
  EXPECT_THAT(after_a_save.text(), HasSubstr("\"restarts\":0"));
}

TEST(RunTimes, AreToldWithTheirShares) {
  RunTimes times;
  EXPECT_EQ(goodput_text(times), "");
  times.wall = 100;
  times.used = {90, 0, 2, 0, 1, 0, 4};
  times.restarts = 2;
  EXPECT_EQ(goodput_text(times),
            "90.0 % of 1:40 in steps that count; evaluation 2.0 %, steps done again 1.0 %, restart "
            "4.0 % (2 times), other 3.0 %");
}

}  // namespace
}  // namespace lockstep::train
