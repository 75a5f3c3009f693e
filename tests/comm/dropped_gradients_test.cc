// A round that contributes gradients is interrupted: none of them is lost.
#include <gtest/gtest.h>

#include "starling/comm/snapshots.h"
#include "starling/sim/cluster.h"

namespace starling::comm {
namespace {

float first_of(ConstBuffer buffer) { return *reinterpret_cast<const float*>(buffer.blob.data); }

void publish(Snapshots& snapshots, Step step, float value) {
  *reinterpret_cast<float*>(snapshots.write().blob.data) = value;
  snapshots.publish(step);
}

SnapshotOptions accumulated() {
  SnapshotOptions options;
  options.shape = {Type::Float32, 1, false};
  options.accumulate = true;
  return options;
}

class DroppedGradients : public testing::Test {
 protected:
  sim::Cluster cluster_{sim::ClusterOptions{}};
  Snapshots snapshots_{cluster_.engine(Rank{0}), accumulated()};
};

TEST_F(DroppedGradients, AreContributedWithWhatWasPublishedMeanwhile) {
  publish(snapshots_, Step{0}, 1);
  EXPECT_EQ(first_of(snapshots_.begin().in), 1);
  publish(snapshots_, Step{1}, 20);
  snapshots_.drop();
  const Contribution::Pass pass = snapshots_.begin();
  EXPECT_EQ(first_of(pass.in), 21);
  EXPECT_EQ(pass.step, Step{1});
  snapshots_.drop();
}

TEST_F(DroppedGradients, AreContributedAgainIfNothingWas) {
  publish(snapshots_, Step{0}, 1);
  snapshots_.begin();
  snapshots_.drop();
  const Contribution::Pass pass = snapshots_.begin();
  EXPECT_EQ(first_of(pass.in), 1);
  EXPECT_EQ(pass.step, Step{0});
  snapshots_.drop();
}

}  // namespace
}  // namespace starling::comm
