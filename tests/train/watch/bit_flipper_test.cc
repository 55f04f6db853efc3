#include "train/watch/bit_flipper.h"

#include <gtest/gtest.h>

#include "tests/train/tiny_run.h"

namespace lockstep::train {
namespace {

config::RunConfig with_flip(const TemporaryDirectory& folder, const std::string& flip) {
  return tiny_run(folder, "train { micro_batch_size: 2 } inject { flip: \"" + flip + "\" }");
}

TEST(BitFlipper, ChangesNoStepBeforeItsOwn) {
  const TemporaryDirectory folder;
  const Trace right = trace(tiny_run(folder, "train { micro_batch_size: 2 }"), 4);
  const Trace wrong =
      trace(with_flip(folder, "step=3,micro_batch=1,operator=addmm,call=2,element=5,bit=30"), 4);
  for (size_t step : {0, 1}) EXPECT_EQ(wrong.losses[step], right.losses[step]);
  for (size_t step : {2, 3}) EXPECT_NE(wrong.losses[step], right.losses[step]);
}

TEST(BitFlipper, MakesTheSameFaultOnADeviceWithStreams) {
  const TemporaryDirectory folder;
  const std::string flip =
      "train { micro_batch_size: 2 } "
      "inject { flip: \"step=2,micro_batch=3,operator=mm,call=2,element=7,bit=20\" }";
  EXPECT_EQ(trace(tiny_run(folder, flip + " device: \"host:0\""), 3),
            trace(tiny_run(folder, flip), 3));
}

TEST(BitFlipper, ReachesTheUpdate) {
  const TemporaryDirectory folder;
  const Trace right = trace(tiny_run(folder, "train { micro_batch_size: 2 }"), 2);
  const Trace wrong = trace(with_flip(folder,
                                      "step=2,micro_batch=update,operator=_fused_adamw_,call=1,"
                                      "result=2,element=1,bit=30"),
                            2);
  EXPECT_EQ(wrong.losses, right.losses);
  EXPECT_NE(wrong.weights, right.weights);
}

TEST(BitFlipper, RefusesWhatTheStepDoesNotHave) {
  const TemporaryDirectory folder;
  const auto problem = [&](const std::string& flip) {
    return message_of<ConfigError>([&] { (void)trace(with_flip(folder, flip), 1); });
  };
  EXPECT_TRUE(
      says(problem("step=1,operator=adm,call=1,element=0,bit=0"), "there is no operator \"adm\""));
  EXPECT_TRUE(says(problem("step=1,operator=addmm,call=99,element=0,bit=0"),
                   "has no call 99 of addmm: expected one of these"));
  EXPECT_TRUE(says(problem("step=1,operator=addmm,call=1,element=99999999,bit=0"),
                   "expected an element below"));
  EXPECT_TRUE(says(problem("step=1,operator=addmm,call=1,element=0,bit=32"), "a bit below 32"));
  EXPECT_TRUE(says(problem("step=1,operator=addmm,call=1,element=0,bit=0,result=1"),
                   "expected one of the 1 tensors"));
}

}  // namespace
}  // namespace lockstep::train
