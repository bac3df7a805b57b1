// How transports use a device link, and what happens to it when a run fails. Tensors without memory
// (meta) stand for device tensors: they are on no CPU, and results have only a shape.
#include "comm/device/device_link.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>

#include "comm/worlds.h"

namespace braid::device_link_test {

class CountingLink : public DeviceLink {
 public:
  explicit CountingLink(const Group& world) { renew(world); }

  std::function<void()> start(const std::vector<Message>& sends,
                              const std::vector<Message>& receives) override {
    EXPECT_TRUE(works);
    for (const auto* messages : {&sends, &receives})
      for (const auto& message : *messages) EXPECT_TRUE(message.x.is_contiguous());
    sent += int(sends.size());
    received += int(receives.size());
    return [this] { ++waited; };
  }
  std::function<void()> all_reduce(const Members& members, const std::vector<Sum>& all) override {
    EXPECT_TRUE(works);
    EXPECT_EQ(members.hosts.size(), int(members.ranks.size()));
    for (const auto& [x, result] : all) {
      EXPECT_TRUE(x.is_contiguous());
      EXPECT_FALSE(x.is_same(result));
    }
    sums += int(all.size());
    return [this] { ++waited; };
  }
  bool can_sum(at::ScalarType dtype) const override { return dtype != at::kByte; }
  void abort() noexcept override {
    works = false;
    ++aborts;
  }
  // NCCL requires that every rank has the first one's word.
  void renew(const Group& world) override {
    const auto word = world.broadcast(at::full({1}, 7 + world.rank()), 0);
    EXPECT_EQ(word.item<std::int64_t>(), 7);
    works = true;
    ++renewals;
  }

  std::atomic<bool> works = false;
  std::atomic<int> aborts = 0, renewals = 0;
  int sent = 0, received = 0, sums = 0, waited = 0;
};

constexpr int kRanks = 3;

void with_links(const std::function<void(ProcessWorld&, CountingLink&)>& use,
                Collectives collectives = Collectives::kOrdered) {
  on_connected_ranks(kRanks, [&](int rank, auto sockets) {
    std::shared_ptr<CountingLink> link;
    ProcessWorld world(std::make_unique<SocketWire>(rank, std::move(sockets)),
                       std::chrono::seconds(10),
                       {.make_link =
                            [&](const Group& g) {
                              link = std::make_shared<CountingLink>(g);
                              return LinkedDevices{.link = link};
                            },
                        .collectives = collectives});
    use(world, *link);
  });
}

Tensor on_device(at::IntArrayRef shape) { return at::empty(shape, at::TensorOptions(at::kMeta)); }

TEST(DeviceLink, TakesTensorsOfDevicesAndNoOthers) {
  with_links([](ProcessWorld& world, CountingLink& link) {
    world.run([&](const Group& g) {
      EXPECT_TRUE(g.stays_on_device());
      EXPECT_EQ(g.all_reduce(at::full({4}, 1))[3].item<std::int64_t>(), kRanks);
      EXPECT_EQ(link.sent + link.received, 0);
      EXPECT_EQ(g.all_reduce(on_device({5, 2})).sizes(), at::IntArrayRef({5, 2}));
      EXPECT_EQ(link.sent, 2 * (kRanks - 1));
      EXPECT_EQ(g.all_gather(on_device({g.rank(), 2}), 0).sizes(), at::IntArrayRef({3, 2}));
      EXPECT_EQ(g.broadcast(on_device({2 + g.rank()}), 2).sizes(), at::IntArrayRef({4}));
      const auto incoming = g.ring_shift(on_device({1, 2}).t());
      const int before = link.waited;
      EXPECT_TRUE(incoming->wait().is_meta());
      EXPECT_EQ(link.waited, before + 1);
    });
    EXPECT_EQ(link.aborts, 0);
    EXPECT_EQ(link.renewals, 1);
    EXPECT_EQ(link.sums, 0);
  });
}

// Every rank makes all elements of a sum that the link has taken, of one part.
TEST(DeviceLink, SumsWhereItIsAskedTo) {
  with_links(
      [](ProcessWorld& world, CountingLink& link) {
        world.run([&](const Group& g) {
          const std::vector xs = {on_device({5, 2}), on_device({0, 2}), on_device({2, 5}).t()};
          std::vector<std::size_t> made;
          const auto sums = g.all_reduce(
              xs, [&](const SumRun& run, std::span<const Tensor> parts, const Tensor& out) {
                made.push_back(run.tensor);
                ASSERT_EQ(parts.size(), 1u);
                EXPECT_TRUE(parts.front().is_same(out));
                EXPECT_EQ(run.elements, (Share{.begin = 0, .count = 10}));
                EXPECT_EQ(out.sizes(), at::IntArrayRef({10}));
              });
          EXPECT_EQ(made, (std::vector<std::size_t>{0, 2}));
          EXPECT_EQ(sums[1].sizes(), xs[1].sizes());
          EXPECT_EQ(sums[2].sizes(), xs[2].sizes());
          EXPECT_EQ(link.sums, 2);
          EXPECT_EQ(link.waited, 1);
          EXPECT_EQ(g.traffic().bytes, 2 * 10 * 4);
          const auto pair = g.subgroup(std::vector{0, 2});
          (void)pair.all_reduce(on_device({3}));
          EXPECT_EQ(link.sums, g.rank() == 1 ? 2 : 3);
          EXPECT_EQ(link.sent, 0);
          (void)g.all_reduce(at::empty({3}, at::TensorOptions(at::kMeta).dtype(at::kByte)));
          EXPECT_GT(link.sent, 0) << "a dtype that it does not sum";
          const int before = link.sums;
          EXPECT_EQ(g.all_reduce(at::full({4}, 1))[3].item<std::int64_t>(), kRanks);
          EXPECT_EQ(link.sums, before);
        });
      },
      Collectives::kNative);
}

TEST(DeviceLink, IsAbortedOnceAndRenewedForTheNextRun) {
  with_links([](ProcessWorld& world, CountingLink& link) {
    std::vector<Group> pairs(kRanks);
    world.run([&](const Group& g) {
      pairs[std::size_t(g.rank())] = g.subgroup(std::vector{0, 1});
    });
    for (int time = 0; time < 5; ++time) {
      EXPECT_NE(failure_of([&] {
                  world.run([&](const Group& g) {
                    (void)g.all_reduce(on_device({3}));
                    if (g.rank() == time % kRanks) throw Error("out of paint");
                    g.barrier();
                  });
                }),
                "");
      EXPECT_EQ(link.aborts, time + 1);
      EXPECT_FALSE(link.works);
      world.run([&](const Group& g) {
        (void)g.all_reduce(on_device({3}));
        (void)pairs[std::size_t(g.rank())].all_reduce(on_device({3}));
      });
      EXPECT_EQ(link.renewals, time + 2);
      EXPECT_EQ(link.aborts, time + 1);
    }
  });
}

// Ranks waiting for the device do not notice a failure: the link must be aborted for them.
TEST(DeviceLink, IsAbortedWhileARankComputes) {
  with_links([](ProcessWorld& world, CountingLink& link) {
    EXPECT_NE(failure_of([&] {
                world.run([&](const Group& g) {
                  g.barrier();
                  if (g.rank() == 1) throw Error("out of paint");
                  while (link.works) std::this_thread::yield();
                });
              }),
              "");
  });
}

// A rank fails before renewing the link: all renew it once more.
TEST(DeviceLink, IsRenewedAgainAfterAFailureToRenew) {
  with_links([](ProcessWorld& world, CountingLink& link) {
    std::stop_source stop;
    stop.request_stop();
    const auto body = [](const Group& g) { g.barrier(); };
    EXPECT_NE(failure_of([&] { world.run([](const Group&) { throw Error("out of paint"); }); }),
              "");
    EXPECT_THROW(world.run(body, world.has_first_rank() ? stop.get_token() : std::stop_token()),
                 Cancelled);
    world.run([&](const Group& g) {
      (void)g.all_reduce(on_device({3}));
      g.barrier();
    });
    EXPECT_TRUE(link.works);
  });
}

}  // namespace braid::device_link_test
