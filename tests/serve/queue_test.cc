// Clients take turns, and the number of pictures is bounded.
#include "serve/jobs/queue.h"
#include "pictures.h"

#include <gtest/gtest.h>

namespace braid::serve::queue_test {

constexpr std::size_t kAnyBytes = 1 << 30;

std::shared_ptr<Job> job_of(const std::string& client, int pictures = 1) {
  Order order{.client = client};
  order.request.num_images = pictures;
  return std::make_shared<Job>(random_id(), order);
}

TEST(Queue, GivesTurnsToClientsAndNotToJobs) {
  Queue queue(64, kAnyBytes);
  const auto a1 = job_of("a"), a2 = job_of("a"), a3 = job_of("a"), b1 = job_of("b"),
             c1 = job_of("c");
  for (const auto& job : {a1, a2, a3, b1, c1}) EXPECT_TRUE(queue.push(job));
  const std::vector<std::shared_ptr<Job>> wanted = {a1, b1, c1, a2, a3};
  EXPECT_EQ(queue.in_order(), wanted);
  for (const auto& job : wanted) EXPECT_EQ(queue.pop(), job);
  EXPECT_EQ(queue.pop(), nullptr);
}

TEST(Queue, BoundsPicturesNotJobs) {
  Queue queue(5, kAnyBytes);
  EXPECT_TRUE(queue.push(job_of("a", 4)));
  EXPECT_FALSE(queue.push(job_of("b", 2)));
  EXPECT_TRUE(queue.push(job_of("b", 1)));
  EXPECT_EQ(queue.used().pictures, 5);
  queue.pop();
  EXPECT_TRUE(queue.push(job_of("b", 2)));
}

TEST(Queue, BoundsTheBytesOfThePicturesThatJobsBring) {
  const auto picture = grey_picture(10, 10);
  const auto with_picture = [&] {
    Order order{.client = "a"};
    order.request.pictures = {.init = picture,
                              .mask = picture,
                              .references = {picture, picture},
                              .controls = {{.picture = picture}}};
    return std::make_shared<Job>(random_id(), order);
  };
  const auto bytes = with_picture()->num_input_bytes();
  EXPECT_EQ(bytes, 5 * 300u);
  Queue queue(64, 2 * bytes);
  EXPECT_TRUE(queue.push(with_picture()));
  EXPECT_TRUE(queue.push(with_picture()));
  EXPECT_FALSE(queue.push(with_picture()));
  EXPECT_TRUE(queue.push(job_of("a")));
  EXPECT_EQ(queue.used().input_bytes, 2 * bytes);
}

TEST(Queue, KeepsRoomForWhatIsStillRead) {
  Queue queue(3, 100);
  EXPECT_TRUE(queue.reserve("", {.pictures = 2, .input_bytes = 60}));
  EXPECT_FALSE(queue.reserve("", {.pictures = 1, .input_bytes = 41}));
  EXPECT_FALSE(queue.push(job_of("a", 2)));
  EXPECT_TRUE(queue.push(job_of("a", 1)));
  queue.release("", {.pictures = 2, .input_bytes = 60});
  EXPECT_TRUE(queue.reserve("", {.pictures = 2, .input_bytes = 100}));
}

TEST(Queue, LeavesAQuarterToOthers) {
  Queue queue(8, 100);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(queue.reserve("user a", {.pictures = 1})) << i;
  EXPECT_FALSE(queue.reserve("user a", {.pictures = 1}));
  EXPECT_TRUE(queue.has_room({.pictures = 2}));
  EXPECT_TRUE(queue.reserve("user b", {.pictures = 1}));
  queue.release("user a", {.pictures = 1});
  EXPECT_TRUE(queue.push(job_of("user a"))) << "it has reserved its room";
  EXPECT_FALSE(queue.reserve("user a", {.pictures = 1})) << "jobs count, too";
  EXPECT_EQ(queue.used_by("user a").pictures, 6);
  EXPECT_TRUE(queue.reserve("user b", {.pictures = 1}));
  EXPECT_FALSE(queue.reserve("user b", {.pictures = 1})) << "the queue is full";
}

TEST(Queue, LeavesAQuarterOfTheBytesToOthers) {
  Queue queue(8, 100);
  EXPECT_TRUE(queue.reserve("user a", {.pictures = 1, .input_bytes = 70}));
  EXPECT_FALSE(queue.reserve("user a", {.pictures = 1, .input_bytes = 6}));
  EXPECT_TRUE(queue.reserve("user b", {.pictures = 1, .input_bytes = 6}));
}

// It may be that of a proxy, before all clients.
TEST(Queue, IsAllForOneAddressUntilAnotherClientComes) {
  Queue queue(8, 100);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(queue.reserve("10.0.0.1", {.pictures = 1})) << i;
  EXPECT_FALSE(queue.reserve("10.0.0.2", {.pictures = 1}));
  queue.release("10.0.0.1", {.pictures = 1});
  EXPECT_FALSE(queue.reserve("10.0.0.1", {.pictures = 1})) << "the other one is expected again";
  EXPECT_TRUE(queue.reserve("10.0.0.2", {.pictures = 1}));
}

// Otherwise a request for more than a share would never be served.
TEST(Queue, TakesAnythingThatFitsOfAClientThatHoldsNothing) {
  Queue queue(8, 100);
  EXPECT_TRUE(queue.reserve("user a", {.pictures = 8, .input_bytes = 100}));
  queue.release("user a", {.pictures = 8, .input_bytes = 100});
  EXPECT_FALSE(queue.has_reservations());
  Queue smallest(1, 100);
  EXPECT_TRUE(smallest.reserve("user a", {.pictures = 1}));
}

TEST(PicturesOfJobs, CountInTheQueue) {
  const auto job = [] {
    return std::make_shared<Job>(
        "id",
        Order{.request = {.pictures = {.references = {{2, 2, std::vector<std::uint8_t>(12)}}}}});
  };
  Queue queue(64, 30);
  EXPECT_TRUE(queue.push(job()));
  EXPECT_TRUE(queue.push(job()));
  EXPECT_FALSE(queue.push(job()));
  queue.pop();
  EXPECT_TRUE(queue.push(job()));
}

TEST(Queue, SaysHowManyPlacesAreFree) {
  Queue queue(8, 100);
  queue.reserve("a", {.pictures = 5, .input_bytes = 60});
  EXPECT_TRUE(fullness_text(queue, "b", {.pictures = 4})
                  .starts_with("the queue has too few places: 3 of 8 are free, this request needs "
                               "4; 5 pictures wait"))
      << fullness_text(queue, "b", {.pictures = 4});
  EXPECT_NE(fullness_text(queue, "b", {.pictures = 1, .input_bytes = 50})
                .find("this request has 50 bytes"),
            std::string::npos)
      << fullness_text(queue, "b", {.pictures = 1, .input_bytes = 50});
  queue.reserve("b", {.pictures = 3});
  EXPECT_TRUE(
      fullness_text(queue, "c", {.pictures = 1}).starts_with("the queue is full: 8 pictures"));
}

TEST(Queue, KnowsWhatItCouldNeverHave) {
  const Queue queue(8, 100);
  EXPECT_TRUE(queue.could_have({.pictures = 8, .input_bytes = 100}));
  EXPECT_FALSE(queue.could_have({.pictures = 9}));
  EXPECT_FALSE(queue.could_have({.pictures = 1, .input_bytes = 101}));
  EXPECT_EQ(too_large_for(queue, {.pictures = 9}).param, "n");
  EXPECT_EQ(too_large_for(queue, {.pictures = 1, .input_bytes = 101}).status, 413);
}

// Its client also loses its turn if that was its only job.
TEST(Queue, LosesAJobThatIsRemoved) {
  for (const auto* const client : {"a", "b"}) {
    Queue queue(5, kAnyBytes);
    const auto first = job_of("a"), second = job_of(client);
    queue.push(first);
    queue.push(second);
    EXPECT_TRUE(queue.remove(*first));
    EXPECT_FALSE(queue.remove(*first));
    EXPECT_EQ(queue.num_jobs(), 1);
    EXPECT_EQ(queue.pop(), second);
    EXPECT_EQ(queue.pop(), nullptr);
  }
}

}  // namespace braid::serve::queue_test
