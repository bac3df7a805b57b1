// Pages when something goes wrong, and what their device sees: damaged files while a model runs,
// memory that is still in use, a change that two processes make.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "files.h"
#include "weights/paging/cpu_device.h"
#include "weights/paging/order_checker.h"
#include "weights/paging/page.h"
#include "weights/paging/page_layout.h"
#include "weights/paging/pages.h"

namespace braid::page_failures_test {

using testing::HasSubstr, testing::IsEmpty;
using namespace testing_files;

constexpr std::int64_t kPage = 3 * 4096;  // bytes

// Groups of one tensor each; all bytes of group i are i.
std::vector<Tensor> add_groups(Pages& pages, int count) {
  std::vector<Tensor> views;
  for (int i = 0; i < count; ++i) {
    pages.add_group("blocks." + std::to_string(i));
    views.push_back(pages.add(at::full({kPage}, i, at::kByte)));
  }
  pages.finish();
  return views;
}

void step(Pages& pages, const std::vector<int>& groups) {
  for (const int group : groups) {
    pages.enter(group);
    pages.leave(group);
  }
}

std::vector<fs::path> pages_in(const fs::path& folder) {
  std::vector<fs::path> pages;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".page") pages.push_back(entry.path());
  return pages;
}

// The file that holds group `number`, by a byte of its contents.
fs::path file_of_group(const fs::path& folder, int number) {
  for (const auto& path : pages_in(folder))
    if (read_file(path).back() == char(number)) return path;
  return {};
}

void flip_last_byte(const fs::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put(char(0xee));
}

class FailingPages : public testing::Test {
 protected:
  std::shared_ptr<Pages> pages(PageOptions options) const {
    options.folder = std::make_shared<const PageFolder>(folder_.path());
    return std::make_shared<Pages>(std::make_shared<CpuPageDevice>(), at::kCPU, options);
  }
  // What entering one group after another throws.
  static std::string failure_of(Pages& pages, const std::vector<int>& groups) {
    return message_of<std::exception>([&] { step(pages, groups); });
  }
  TemporaryFolder folder_;
};

// Weights that could not be read must not be those of another group.
TEST_F(FailingPages, EndTheUseOfAPageThatIsDamagedMeanwhile) {
  for (const int prefetch : {0, 1, 3}) {
    const auto pages = this->pages({.prefetch = prefetch});
    const auto views = add_groups(*pages, 9);  // every slot has several
    const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    step(*pages, all);
    const auto damaged = file_of_group(folder_.path(), 3);
    flip_last_byte(damaged);
    const auto failure = failure_of(*pages, all) + failure_of(*pages, all);
    EXPECT_THAT(failure, HasSubstr(damaged.string())) << prefetch;
    EXPECT_THAT(failure, HasSubstr("is damaged")) << prefetch;
    EXPECT_FALSE(fs::exists(damaged)) << "rebuilt at the next start";
  }
}

TEST_F(FailingPages, AreRebuiltByTheNextLoad) {
  {
    const auto pages = this->pages({.prefetch = 1});
    (void)add_groups(*pages, 4);
    flip_last_byte(file_of_group(folder_.path(), 2));
    EXPECT_NE(failure_of(*pages, {0, 1, 2, 3, 0, 1, 2, 3}), "");
  }
  EXPECT_EQ(pages_in(folder_.path()).size(), 3u);
  const auto pages = this->pages({.prefetch = 1});
  const auto views = add_groups(*pages, 4);
  EXPECT_EQ(pages_in(folder_.path()).size(), 4u);
  for (const int group : {0, 1, 2, 3, 2}) {
    pages->enter(group);
    EXPECT_TRUE(views[std::size_t(group)].eq(group).all().item<bool>()) << group;
    pages->leave(group);
  }
}

// The one that was asked for first; what follows from it would lead a user astray.
TEST_F(FailingPages, TellOfTheFirstOfTwo) {
  const auto pages = this->pages({.prefetch = 3});
  (void)add_groups(*pages, 8);
  const auto first = file_of_group(folder_.path(), 1), second = file_of_group(folder_.path(), 2);
  flip_last_byte(first);
  flip_last_byte(second);
  const auto failure = failure_of(*pages, {0, 1, 2, 3});
  EXPECT_THAT(failure, HasSubstr(first.string()));
  EXPECT_THAT(failure, testing::Not(HasSubstr(second.string())));
}

// A disk that was away for a while takes with it what was asked for meanwhile, and no more.
TEST_F(FailingPages, AreReadAgainOnceTheirFileIsBack) {
  for (const int prefetch : {0, 1, 3}) {
    const auto pages = this->pages({.prefetch = prefetch});
    const auto views = add_groups(*pages, 9);
    step(*pages, {0, 1, 2});
    std::map<fs::path, fs::path> moved;
    for (const int group : {3, 4, 5}) {
      const auto file = file_of_group(folder_.path(), group);
      moved[file] = file.string() + ".away";
    }
    for (const auto& [file, away] : moved) fs::rename(file, away);
    step(*pages, {6, 7, 8, 0, 1, 2});  // none of those that were copied ahead
    EXPECT_NE(failure_of(*pages, {3}), "") << prefetch;
    for (const auto& [file, away] : moved) fs::rename(away, file);
    for (const int group : {0, 1, 2, 3, 4, 5, 6, 7, 8}) {
      pages->enter(group);
      EXPECT_TRUE(views[std::size_t(group)].eq(group).all().item<bool>()) << group;
      pages->leave(group);
    }
  }
}

// Bytes between tensors belong to the page's contents: left as they were in memory, equal pages
// would have different files.
TEST_F(FailingPages, LoadedAlikeAreOneFile) {
  for (int time = 0; time < 2; ++time) {
    const auto pages = this->pages({});
    pages->add_group("odd");
    const auto some = pages->add(at::full({7}, 1.5f)), more = pages->add(at::full({3, 5}, 2.5f));
    pages->finish();
    EXPECT_EQ(pages_in(folder_.path()).size(), 1u);
    pages->enter(0);
    EXPECT_TRUE(some.eq(1.5).all().item<bool>());
    EXPECT_TRUE(more.eq(2.5).all().item<bool>());
    pages->leave(0);
  }
}

TEST(PageOptionsGiven, AreCopiesAheadThatFitADevice) {
  const auto make = [](int prefetch) {
    return message_of<InputError>(
        [&] { Pages(std::make_shared<CpuPageDevice>(), at::kCPU, {.prefetch = prefetch}); });
  };
  EXPECT_EQ(make(0), "");
  EXPECT_THAT(make(-1), HasSubstr("between 0 and 64, it is -1"));
  EXPECT_THAT(make(65), HasSubstr("between 0 and 64, it is 65"));
}

// Those used once would hold memory during the whole loop.
TEST(ResidentGroups, AreNoneOfThoseUsedOnceUnlessAllAre) {
  const GroupCost once{.bytes = 4096, .use = PageUse::kOnce}, repeated{.bytes = 4096};
  const std::vector<GroupCost> groups = {once, repeated, once, repeated, repeated};
  using Stay = std::vector<bool>;
  for (const auto residency : {Residency::kLeading, Residency::kStrided}) {
    EXPECT_EQ(resident_groups(groups, 0, residency), Stay(5, false));
    EXPECT_EQ(resident_groups(groups, -1, residency), Stay(5, true));
    for (int count = 1; count <= 9; ++count) {
      const auto stay = resident_groups(groups, count, residency);
      EXPECT_FALSE(stay[0] || stay[2]) << count;
      EXPECT_EQ(stay[1] + stay[3] + stay[4], std::min(count, 3)) << count;
    }
  }
}

// ---------------------------------------------------------------------------- what devices see

// Computes nothing; remembers what it was given, in order.
class Ledger : public PageDevice {
 public:
  struct Entry {
    enum class Kind { kAllocate, kRecord, kWait, kCopy, kUse, kFree } kind;
    StreamName stream = StreamName::kCompute;
    int id = -1;  // of the slot or the event
  };
  explicit Ledger(bool is_asynchronous) : is_asynchronous_(is_asynchronous) {}

  bool is_asynchronous() const override { return is_asynchronous_; }
  Slot allocate(std::int64_t bytes, Site) override {
    slots_.push_back(aligned_bytes(bytes));
    entries.push_back({.kind = Entry::Kind::kAllocate, .id = int(slots_.size()) - 1});
    return {int(slots_.size()) - 1};
  }
  void free(Slot slot, Site) override {
    entries.push_back({.kind = Entry::Kind::kFree, .id = slot.id});
  }
  Tensor memory(Slot slot) const override { return slots_[std::size_t(slot.id)]; }
  Event make_event(Site) override { return {num_events_++}; }
  void record(Event event, StreamName stream, Site) override {
    entries.push_back({Entry::Kind::kRecord, stream, event.id});
  }
  void wait(StreamName stream, Event event, Site) override {
    entries.push_back({Entry::Kind::kWait, stream, event.id});
  }
  void copy(StreamName stream, Slot to, const PageBytes&, Site) override {
    entries.push_back({Entry::Kind::kCopy, stream, to.id});
  }
  void use(StreamName stream, Slot slot, const PageBytes&, Site) override {
    entries.push_back({Entry::Kind::kUse, stream, slot.id});
  }
  void synchronize(Event, Site) override {}

  std::vector<Entry> entries;

 private:
  bool is_asynchronous_;
  std::vector<Tensor> slots_;
  int num_events_ = 0;
};

using Kind = Ledger::Entry::Kind;

// Memory that another model gave back may still be read by computations that were queued before.
TEST(Copies, WaitForWhatWasQueuedWhenTheirMemoryWasTaken) {
  const auto ledger = std::make_shared<Ledger>(/*is_asynchronous=*/true);
  Pages pages(ledger, at::kCPU, {.prefetch = 2});
  (void)add_groups(pages, 5);
  step(pages, {0, 1, 2, 3, 4});
  std::set<int> taken, recorded, safe;  // slots; events of compute; slots copied into safely
  std::set<int> waited;                 // events the copy stream waits for, since its last copy
  for (const auto& [kind, stream, id] : ledger->entries) {
    if (kind == Kind::kAllocate) taken.insert(id);
    if (kind == Kind::kRecord && stream == StreamName::kCompute) recorded.insert(id);
    if (kind == Kind::kWait && stream == StreamName::kCopy) waited.insert(id);
    if (kind != Kind::kCopy || stream != StreamName::kCopy) continue;
    const bool is_safe = std::any_of(waited.begin(), waited.end(),
                                     [&](int event) { return recorded.contains(event); });
    EXPECT_TRUE(is_safe || safe.contains(id)) << "the first copy into slot " << id;
    safe.insert(id);
    waited.clear();
  }
  EXPECT_EQ(safe.size(), taken.size());
}

// An asynchronous device gets its computations before the host reads the next page; a device that
// computes on the host copies the next page meanwhile.
TEST(Copies, AreAskedForBehindTheComputationsOfAnAsynchronousDevice) {
  for (const bool is_asynchronous : {true, false}) {
    const auto ledger = std::make_shared<Ledger>(is_asynchronous);
    Pages pages(ledger, at::kCPU, {.prefetch = 1});
    (void)add_groups(pages, 6);
    step(pages, {0, 1, 2, 3, 4, 5});
    const auto copies_since = [&](std::size_t from) {
      return std::count_if(ledger->entries.begin() + std::ptrdiff_t(from), ledger->entries.end(),
                           [](const auto& entry) { return entry.kind == Kind::kCopy; });
    };
    for (const int group : {0, 1, 2, 3, 4, 5}) {
      const auto before = ledger->entries.size();
      pages.enter(group);  // itself copied a step ago
      EXPECT_EQ(copies_since(before), is_asynchronous ? 0 : 1) << group;
      const auto between = ledger->entries.size();
      pages.leave(group);
      EXPECT_EQ(copies_since(between), is_asynchronous ? 1 : 0) << group;
    }
  }
}

// Fails once where it is told to.
class Failing : public Ledger {
 public:
  enum class At { kNothing, kCopy, kRecord };
  Failing() : Ledger(/*is_asynchronous=*/true) {}

  void record(Event event, StreamName stream, Site site) override {
    fail(At::kRecord);
    Ledger::record(event, stream, site);
  }
  void copy(StreamName stream, Slot to, const PageBytes& from, Site site) override {
    fail(At::kCopy);
    Ledger::copy(stream, to, from, site);
  }

  At next = At::kNothing;

 private:
  void fail(At at) {
    check(std::exchange(next, next == at ? At::kNothing : next) != at, "the device failed");
  }
};

// The end of a use cannot throw: it runs while the scope is left, perhaps by an error.
TEST(Copies, AheadThatFailAreMadeAgainWhenTheyAreNeeded) {
  const auto device = std::make_shared<Failing>();
  const auto pages = std::make_shared<Pages>(device, at::kCPU, PageOptions{.prefetch = 1});
  (void)add_groups(*pages, 4);
  step(*pages, {0, 1, 2, 3, 0});
  const Page second(pages, 1), third(pages, 2);
  device->next = Failing::At::kCopy;
  { const auto in_use = second.use(); }
  EXPECT_EQ(device->next, Failing::At::kNothing) << "a copy failed";
  const auto before = device->entries.size();
  { const auto in_use = third.use(); }
  const auto is_copy = [](const auto& entry) { return entry.kind == Kind::kCopy; };
  EXPECT_EQ(std::count_if(device->entries.begin() + std::ptrdiff_t(before), device->entries.end(),
                          is_copy),
            2)
      << "its own and the next one";
}

TEST(Uses, WhoseEndFailsAreReportedByTheNext) {
  const auto device = std::make_shared<Failing>();
  const auto pages = std::make_shared<Pages>(device, at::kCPU, PageOptions{.prefetch = 0});
  (void)add_groups(*pages, 3);
  step(*pages, {0, 1, 2});
  const Page first(pages, 0), second(pages, 1);
  {
    const auto in_use = first.use();
    device->next = Failing::At::kRecord;
  }
  EXPECT_THAT(message_of<Error>([&] { const auto in_use = second.use(); }),
              HasSubstr("the device failed"));
  EXPECT_NO_THROW(step(*pages, {1, 2, 0}));
}

TEST(Slots, AreFreedBehindTheCopiesThatFillThem) {
  const auto checker = std::make_shared<OrderChecker>(std::make_shared<CpuPageDevice>());
  for (const int last : {0, 3}) {
    Pages pages(checker, at::kCPU, {.prefetch = 2, .resident = 1});
    (void)add_groups(pages, 6);
    step(pages, {0, 1, 2, 3});
    pages.enter(last);
    pages.leave(last);
  }
  EXPECT_THAT(checker->hazards(), IsEmpty()) << checker->hazards().front().sentence;
}

TEST(PagesInUse, EndWithTheirScope) {
  const auto pages =
      std::make_shared<Pages>(std::make_shared<CpuPageDevice>(), at::kCPU, PageOptions{});
  (void)add_groups(*pages, 3);
  const Page first(pages, 0);
  EXPECT_ANY_THROW({
    const auto in_use = first.use();
    throw Error("a computation failed");
  });
  EXPECT_NO_THROW(step(*pages, {0, 1, 2, 0}));
  const auto again = first.use();
  EXPECT_ANY_THROW(pages->enter(0));
}

}  // namespace braid::page_failures_test
