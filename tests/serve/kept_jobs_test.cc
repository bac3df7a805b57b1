// Which ended jobs make room for others.
#include "serve/jobs/kept_jobs.h"

#include <gtest/gtest.h>

namespace braid::serve::kept_jobs_test {

class Kept {
 public:
  explicit Kept(KeepLimits limits) : jobs_(limits) {}

  // A job that has ended with a picture of so many bytes, or with none.
  std::string add(const std::string& client, std::size_t bytes) {
    const auto job = std::make_shared<Job>(random_id(), Order{.client = client});
    if (bytes > 0) job->add({.file = std::make_shared<const std::string>(bytes, 'x')});
    job->finish({.state = bytes > 0 ? JobState::kDone : JobState::kCancelled});
    jobs_.add(job);
    jobs_.forget_old();
    return job->id();
  }
  bool has(const std::string& id) const { return jobs_.find(id) != nullptr; }

 private:
  KeptJobs jobs_;
};

// A client could else drive out all others in no time.
TEST(KeptJobs, ForgetThoseWithoutPicturesFirst) {
  Kept kept({.jobs = 4});
  const auto made = kept.add("b", 1), first = kept.add("a", 0);
  for (int i = 0; i < 20; ++i) kept.add("a", 0);
  const auto last = kept.add("a", 0);
  EXPECT_TRUE(kept.has(made));
  EXPECT_FALSE(kept.has(first)) << "the oldest goes first";
  EXPECT_TRUE(kept.has(last));
}

TEST(KeptJobs, ForgetThoseOfTheClientThatHasMost) {
  Kept kept({.jobs = 4});
  const auto of_b = kept.add("b", 1), of_c = kept.add("c", 1), first = kept.add("a", 1);
  std::string last;
  for (int i = 0; i < 20; ++i) last = kept.add("a", 1);
  EXPECT_TRUE(kept.has(of_b));
  EXPECT_TRUE(kept.has(of_c));
  EXPECT_FALSE(kept.has(first));
  EXPECT_TRUE(kept.has(last));
}

TEST(KeptJobs, ForgetTheOldestWhereAllClientsHaveAsMany) {
  Kept kept({.jobs = 2});
  const auto a = kept.add("a", 1), b = kept.add("b", 1), c = kept.add("c", 1);
  EXPECT_FALSE(kept.has(a));
  EXPECT_TRUE(kept.has(b));
  EXPECT_TRUE(kept.has(c));
}

TEST(KeptJobs, ForgetThoseOfTheClientWhosePicturesTakeMost) {
  Kept kept({.bytes = 100});
  const auto small = kept.add("b", 10), none = kept.add("b", 0), large = kept.add("a", 60);
  const auto larger = kept.add("a", 80);
  EXPECT_TRUE(kept.has(small));
  EXPECT_TRUE(kept.has(none)) << "this frees nothing";
  EXPECT_FALSE(kept.has(large));
  EXPECT_TRUE(kept.has(larger));
  const auto largest = kept.add("a", 1000);
  EXPECT_TRUE(kept.has(largest)) << "its client has just been told of its end";
  EXPECT_FALSE(kept.has(larger));
}

TEST(KeptJobs, StayWhileTheyAreFewAndYoung) {
  Kept kept({.jobs = 3, .bytes = 3});
  const auto a = kept.add("a", 1), b = kept.add("a", 1), c = kept.add("a", 1);
  for (const auto& id : {a, b, c}) EXPECT_TRUE(kept.has(id));
  Kept old({.time = std::chrono::seconds(-1)});
  EXPECT_FALSE(old.has(old.add("a", 1)));
}

TEST(KeptJobs, AreWaitedForByClientsThatWereJustToldOfThem) {
  KeptJobs kept({});
  const auto made = [&](JobState state) {
    auto job = std::make_shared<Job>(random_id(), Order{});
    for (int i = 0; i < 2; ++i) job->add({.file = std::make_shared<const std::string>("x")});
    job->finish({.state = state});
    kept.add(job);
    return job;
  };
  const auto job = made(JobState::kDone), dropped = made(JobState::kDone);
  made(JobState::kFailed);
  const auto end = *job->status().finished;
  using std::chrono::milliseconds;
  EXPECT_EQ(kept.num_unfetched(end), 4);
  dropped->request_stop();
  EXPECT_EQ(kept.num_unfetched(end), 2) << "its client wants none";
  job->mark_fetched(1);
  EXPECT_EQ(kept.num_unfetched(end + milliseconds(4999)), 1);
  EXPECT_EQ(kept.num_unfetched(end + milliseconds(5000)), 0) << "its client would have come";
}

}  // namespace braid::serve::kept_jobs_test
