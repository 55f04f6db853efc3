#include "dist/transport/transfer.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace lockstep::dist {
namespace {

TEST(TransferPool, BuffersArePowersOfTwoOfAtLeast256AndAreUsedAgain) {
  TransferPool pool;
  EXPECT_EQ(pool.make_buffer(0).capacity, 256u);
  EXPECT_EQ(pool.make_buffer(256).capacity, 256u);
  SpareBuffer first = pool.make_buffer(257);
  EXPECT_EQ(first.capacity, 512u);
  const std::byte* const memory = first.data.get();
  pool.drop(std::move(first));
  pool.drop(SpareBuffer());  // nothing
  const SpareBuffer smaller = pool.make_buffer(256);
  EXPECT_NE(smaller.data.get(), memory);
  const SpareBuffer again = pool.make_buffer(512);
  EXPECT_EQ(again.data.get(), memory);
  EXPECT_NE(pool.make_buffer(512).data.get(), memory);
}

TEST(TransferPool, ADroppedTransferComesBackAsNewAndItsBufferFree) {
  TransferPool pool;
  Transfer* const transfer = pool.make();
  transfer->tag = 7;
  transfer->spare = pool.make_buffer(1000);
  const std::byte* const memory = transfer->spare.data.get();
  pool.drop(transfer);
  Transfer* const again = pool.make();
  EXPECT_EQ(again, transfer);
  EXPECT_EQ(again->tag, 0u);
  EXPECT_EQ(again->spare.data, nullptr);
  EXPECT_EQ(pool.make_buffer(1000).data.get(), memory);
  EXPECT_NE(pool.make(), again);
}

TEST(ChannelMessages, CountsWhatIsPendingAndWhatHasEnded) {
  ChannelMessages messages;
  Message one, two, three;
  for (Message* each : {&one, &two, &three}) messages.begin(*each);
  EXPECT_EQ(messages.pending(), 3);
  EXPECT_EQ(one.state, Message::State::kPending);
  EXPECT_FALSE(messages.has_ended());
  messages.forget(three);
  EXPECT_EQ(three.state, Message::State::kIdle);
  EXPECT_EQ(messages.pending(), 2);
  EXPECT_FALSE(messages.has_ended()) << "it was taken back";
  messages.end(one, 40);
  EXPECT_EQ(one.state, Message::State::kDone);
  EXPECT_EQ(one.bytes, 40u);
  EXPECT_TRUE(messages.take_ended());
  EXPECT_FALSE(messages.take_ended());
  messages.fail(two, "gone");
  EXPECT_EQ(two.state, Message::State::kFailed);
  EXPECT_EQ(two.error, "gone");
  EXPECT_EQ(messages.pending(), 0);
  EXPECT_TRUE(messages.has_ended());
  EXPECT_EQ(messages.take_ended_bytes(), 40u);
  EXPECT_EQ(messages.take_ended_bytes(), 0u);
}

TEST(ChannelMessages, FailAllThatAreQueued) {
  ChannelMessages messages;
  TransferPool pool;
  TransferQueue queue;
  Message message;
  messages.begin(message);
  for (Message* each : {&message, static_cast<Message*>(nullptr)}) {
    Transfer* const transfer = pool.make();
    transfer->message = each;
    queue.push(transfer);
  }
  messages.fail_all(pool, queue, "no luck");
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(message.error, "no luck");
  EXPECT_EQ(messages.pending(), 0);
}

}  // namespace
}  // namespace lockstep::dist
