#include "comm/process/progress_thread.h"

#include <algorithm>

namespace braid {
namespace {

std::byte* data_of(const Tensor& x) { return static_cast<std::byte*>(x.mutable_data_ptr()); }
std::size_t size_of(const Tensor& x) { return std::size_t(x.numel()) * x.element_size(); }

}  // namespace

class ProgressThread::Delivery {
 public:
  std::vector<Parcel> parcels;  // keeps the memory alive
  std::vector<int> open;        // peers of what is posted and not done
  std::size_t left = 0;
};

ProgressThread::ProgressThread(std::unique_ptr<Wire> wire, std::shared_ptr<Fate> fate)
    : wire_(std::move(wire)),
      fate_(std::move(fate)),
      rank_(wire_->rank()),
      size_(wire_->size()),
      membership_(*wire_, fate_),
      bytes_sent_(std::size_t(size_)) {
  thread_ = std::thread([this] {
    try {
      work();
    } catch (const std::exception& e) {
      fate_->fail(rank_, std::make_exception_ptr(WorldLost(e.what())));
      changed_.notify_all();
    }
  });
}

ProgressThread::~ProgressThread() {
  if (!fate_->is_lost()) announce_exit();
  {
    const std::scoped_lock lock(mutex_);
    is_ending_ = true;
  }
  wire_->wake();
  thread_.join();
  fate_->is_lost() ? wire_->abandon() : wire_->close();
}

std::shared_ptr<ProgressThread::Delivery> ProgressThread::start(
    int channel, const std::vector<Parcel>& sends, const std::vector<Parcel>& receives) {
  auto delivery = std::make_shared<Delivery>();
  delivery->parcels = sends;
  delivery->parcels.insert(delivery->parcels.end(), receives.begin(), receives.end());
  std::vector<Command> commands;
  for (const auto& [parcels, is_send] : {std::pair(&receives, false), std::pair(&sends, true)})
    for (const auto& parcel : *parcels) {
      if (size_of(parcel.bytes) == 0) continue;  // both sides know the sizes
      commands.push_back({is_send,
                          {parcel.peer, channel, data_of(parcel.bytes), size_of(parcel.bytes)},
                          delivery});
    }
  delivery->left = commands.size();
  {
    const std::scoped_lock lock(mutex_);
    commands_.insert(commands_.end(), commands.begin(), commands.end());
  }
  wire_->wake();
  return delivery;
}

void ProgressThread::wait(Delivery& delivery, Patience patience) {
  const auto awaits_those_who_left = [&] {
    return std::any_of(delivery.open.begin(), delivery.open.end(),
                       [&](int peer) { return membership_.has_left(peer); });
  };
  std::unique_lock lock(mutex_);
  fate_->wait(
      lock, changed_,
      {.has_come = [&] { return delivery.left == 0; },
       .name = [&] { return awaited_by(delivery); },
       .is_endless = [&] { return patience == Patience::kEndless && !awaits_those_who_left(); }});
}

// Requires the lock.
std::string ProgressThread::awaited_by(const Delivery& delivery) {
  auto ranks = delivery.open;
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string names = ranks.size() == 1 ? "rank " : "ranks ";
  for (const int rank : ranks) names += (rank == ranks.front() ? "" : ", ") + std::to_string(rank);
  return names;
}

int ProgressThread::new_channel() {
  constexpr int kMostChannels = 1 << 28;
  check(num_channels_ < kMostChannels, "the groups of a world of processes have had ",
        num_channels_, " subgroups, the most that are possible");
  return kWorldChannel + ++num_channels_;
}

std::vector<Ending> ProgressThread::end_run(Ending mine) {
  mine.num_channels = num_channels_;
  auto endings = meet(mine);
  const auto went_well = [](const Ending& e) { return e.kind == Ending::Kind::kWell; };
  if (std::all_of(endings.begin(), endings.end(), went_well)) return endings;
  drop_what_is_under_way(endings);
  // A rank may have created groups in the run that others did not get to.
  for (const auto& ending : endings) num_channels_ = std::max(num_channels_, ending.num_channels);
  meet({});  // nobody sends what others would still drop
  return endings;
}

std::vector<Ending> ProgressThread::meet(const Ending& mine) {
  say({.kind = Membership::StatusMessage::Kind::kEnding, .ending = mine});
  return membership_.await_endings(mine);
}

void ProgressThread::drop_what_is_under_way(const std::vector<Ending>& endings) {
  std::unique_lock lock(mutex_);
  to_drop_ = endings;
  wire_->wake();
  while (!changed_.wait_for(lock, kGlance, [&] { return to_drop_.empty(); }))
    if (fate_->is_lost()) throw WorldLost("the world was lost");
}

// Status messages come after the commands given before them.
void ProgressThread::take_commands() {
  std::vector<Command> commands;
  std::vector<Membership::StatusMessage> messages;
  {
    const std::scoped_lock lock(mutex_);
    commands.swap(commands_);
    messages.swap(status_messages_);
  }
  for (const auto& command : commands) post(command);
  for (const auto& status : messages) membership_.tell(status, bytes_sent_);
}

void ProgressThread::work() {
  while (true) {
    take_commands();
    go_on();
    membership_.keep_watch();
    const auto epoch = fate_->epoch();  // read first: it increases when the failure is forgotten
    if (fate_->failed()) react(epoch);
    const std::scoped_lock lock(mutex_);
    if (!to_drop_.empty()) drop();
    is_silent_ = status_messages_.empty() && membership_.is_silent();
    if (is_silent_) changed_.notify_all();
    if (is_ending_) return;
  }
}

// A lost peer may have said why just before, so everything it sent is heard first.
void ProgressThread::go_on() {
  std::vector<Wire::Lost> lost;
  bool is_heard = false;
  while (!is_heard) {
    const auto events = wire_->poll(std::chrono::milliseconds(lost.empty() ? 5 : 0));
    for (const auto ticket : events.done)
      if (!membership_.finish(ticket)) finish(ticket);
    lost.insert(lost.end(), events.lost.begin(), events.lost.end());
    is_heard = lost.empty() || events.done.empty();
  }
  for (const auto& peer : lost) membership_.lose(peer.peer, peer.why);
}

void ProgressThread::post(const Command& command) {
  const auto& message = command.message;
  posted_[command.is_send ? wire_->send(message) : wire_->receive(message)] = command;
  if (command.is_send) bytes_sent_[std::size_t(message.peer)] += message.size;
  const std::scoped_lock lock(mutex_);
  command.delivery->open.push_back(message.peer);
}

void ProgressThread::finish(Wire::Ticket ticket) {
  const auto it = posted_.find(ticket);
  if (it == posted_.end()) return;
  const auto command = std::move(it->second);
  posted_.erase(it);
  const std::scoped_lock lock(mutex_);
  auto& open = command.delivery->open;
  open.erase(std::find(open.begin(), open.end(), command.message.peer));
  if (--command.delivery->left == 0) changed_.notify_all();
}

// Requires the lock. Sends end by themselves: the others drop them too.
void ProgressThread::drop() {
  if (!is_dropping_)
    for (int peer = 0; peer < size_; ++peer)
      if (peer != rank_) wire_->drop(peer, to_drop_[std::size_t(peer)].bytes_sent);
  is_dropping_ = wire_->is_dropping();
  if (is_dropping_) return;
  std::erase_if(posted_, [](const auto& posted) { return !posted.second.is_send; });
  to_drop_.clear();
  changed_.notify_all();
}

void ProgressThread::on_failure(std::function<void()> action) {
  const std::scoped_lock lock(mutex_);
  on_failure_ = std::move(action);
}

void ProgressThread::react(std::uint64_t epoch) {
  if (epoch < next_reaction_) return;
  next_reaction_ = epoch + 1;
  std::function<void()> action;
  {
    const std::scoped_lock lock(mutex_);
    action = on_failure_;
  }
  if (action) action();
}

void ProgressThread::say(Membership::StatusMessage status) {
  {
    const std::scoped_lock lock(mutex_);
    status_messages_.push_back(std::move(status));
    is_silent_ = false;
  }
  wire_->wake();
}

void ProgressThread::tell_loss(int culprit, const std::exception_ptr& cause) {
  using Kind = Membership::StatusMessage::Kind;
  say({.kind = is_gone(cause) ? Kind::kGone : Kind::kLoss,
       .ending = {.culprit = culprit, .sentence = message_of(cause)}});
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::seconds(1), [&] { return is_silent_; });
}

void ProgressThread::announce_exit() {
  say({.kind = Membership::StatusMessage::Kind::kGoodbye});
  const auto end = fate_->now() + fate_->deadline();
  std::unique_lock lock(mutex_);
  while (!(is_silent_ && membership_.have_all_left()) && !fate_->is_lost() && fate_->now() < end)
    changed_.wait_for(lock, kGlance);
}

}  // namespace braid
