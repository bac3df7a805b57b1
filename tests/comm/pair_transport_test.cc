// What collectives copy to where messages are sent from.
#include "comm/pair_transport.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/worlds.h"

namespace braid::pair_transport_test {

// Rank 0 of three; keeps what it should send, and sends nothing. Its staging device is meta, on
// which copies have no memory.
class Unsent : public PairTransport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 3; }
  const Fate& fate() const override { return fate_; }
  std::vector<Note> compare(const Note& mine, Patience) override { return {mine, mine, mine}; }
  std::shared_ptr<Transport> subgroup(std::span<const int>) override { return nullptr; }

  std::vector<Tensor> unsent;

 protected:
  at::Device staging_device(at::Device) const override { return at::kMeta; }
  Wait start(const std::vector<Piece>& out, const std::vector<Piece>&, Patience) override {
    for (const auto& piece : out) unsent.push_back(piece.x);
    throw Error("it sends nothing");
  }

 private:
  Fate fate_;
};

TEST(Staging, OfAGatherIsOneCopyForAllRanks) {
  Unsent transport;
  EXPECT_THROW((void)transport.all_gather(at::zeros({4}), {{4}, {4}, {4}}), Error);
  ASSERT_EQ(transport.unsent.size(), 2u);
  EXPECT_TRUE(transport.unsent[0].is_meta());
  EXPECT_TRUE(transport.unsent[0].is_same(transport.unsent[1]));
}

// A tensor without memory cannot be copied to a host.
TEST(Staging, OfABroadcastIsItsRoots) {
  run_over(Over::kSockets, {.size = 2}, [](const Group& world) {
    const auto x = world.rank() == 0 ? at::arange(3, at::kFloat)
                                     : at::empty({8}, at::TensorOptions(at::kMeta));
    EXPECT_EQ(world.broadcast(x, 0).sizes(), at::IntArrayRef({3}));
  });
}

}  // namespace braid::pair_transport_test
