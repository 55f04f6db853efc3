// Requirements shared with JobControl are in job_control_test.cc.

#include "dist/rendezvous/control_inbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <thread>

namespace lockstep::dist {
namespace {

/// Records the first letters of messages until `last` has come.
class Letters {
 public:
  JobControl::Listener listener() {
    return {.on_message =
                [this](int, const std::string& message) {
                  const std::lock_guard lock(mutex_);
                  letters_ += message[0];
                  changed_.notify_all();
                },
            .on_failure = nullptr};
  }
  std::string until(char last) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(10),
                                  [&] { return letters_.find(last) != std::string::npos; }));
    return letters_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string letters_;
};

TEST(ControlInbox, KeepsUpToAMebibyteForAListenerThatIsNotThereYet) {
  ControlInbox inbox;
  constexpr size_t kQuarter = 256 << 10;
  // With a byte more for each, four are more than a mebibyte: the fifth is dropped.
  for (const char c : {'a', 'b', 'c', 'd', 'e'}) inbox.deliver(0, std::string(kQuarter, c));
  Letters first;
  inbox.listen(first.listener());
  EXPECT_EQ(first.until('d'), "abcd");
  inbox.stop_listening();
  for (const char c : {'f', 'g', 'h', 'i', 'j'}) inbox.deliver(0, std::string(kQuarter, c));
  Letters second;
  inbox.listen(second.listener());
  EXPECT_EQ(second.until('i'), "fghi");
  inbox.deliver(0, "k");
  EXPECT_EQ(second.until('k'), "fghik");
  EXPECT_EQ(first.until('d'), "abcd");
}

TEST(ControlInbox, ListeningEndsWhenTheListenersCallHasReturned) {
  ControlInbox inbox;
  std::promise<void> called, may_return;
  std::atomic<bool> returned = false;
  inbox.listen({.on_message =
                    [&](int, const std::string&) {
                      called.set_value();
                      may_return.get_future().wait();
                      returned = true;
                    },
                .on_failure = nullptr});
  inbox.deliver(0, "a");
  called.get_future().wait();
  std::thread ends([&] {
    inbox.stop_listening();
    EXPECT_TRUE(returned);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the other thread waits
  may_return.set_value();
  ends.join();
}

TEST(ControlInbox, KeepsTheFirstFailure) {
  ControlInbox inbox;
  EXPECT_FALSE(inbox.failure());
  inbox.fail({2, "first"});
  inbox.fail({1, "second"});
  EXPECT_EQ(inbox.failure()->rank, 2);
  EXPECT_EQ(inbox.failure()->text, "first");
  inbox.stop_listening();  // without a listener before
}

}  // namespace
}  // namespace lockstep::dist
