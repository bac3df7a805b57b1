#include "comm/process/courier.h"

#include <algorithm>
#include <cstring>

namespace braid {
namespace {

constexpr std::size_t kLongestSentence = 1012;
constexpr auto kGlance = std::chrono::milliseconds(5);

std::byte* data_of(const Tensor& x) { return static_cast<std::byte*>(x.mutable_data_ptr()); }
std::size_t size_of(const Tensor& x) { return std::size_t(x.numel()) * x.element_size(); }

}  // namespace

bool is_gone(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const RankIsGone&) {
    return true;
  } catch (...) {
    return false;
  }
}

// What the couriers say to each other: all messages are alike in size.
struct Courier::Control {
  Kind kind;
  std::int32_t culprit;  // of a failure: the rank it began with
  std::int32_t length;
  char sentence[kLongestSentence];
};

struct Courier::Peer {
  int rank;
  Control heard{};  // the next message of this peer is received into it
  Wire::Ticket listening = 0;
  Clock::time_point last_heard = Clock::now();
  bool has_left = false, is_lost = false;
  std::map<Wire::Ticket, std::unique_ptr<Control>> saying;
};

class Courier::Delivery {
 public:
  std::vector<Parcel> parcels;  // keeps their memory
  struct Open {
    Wire::Ticket ticket;
    int peer;
  };
  std::vector<Open> open;
  std::size_t left = 0;
};

Courier::Courier(std::unique_ptr<Wire> wire, std::shared_ptr<Fate> fate)
    : wire_(std::move(wire)), fate_(std::move(fate)), rank_(wire_->rank()), size_(wire_->size()) {
  interval_ = std::min<Clock::duration>(std::chrono::seconds(1), fate_->deadline() / 4);
  last_watch_ = last_sign_ = Clock::now();
  for (int r = 0; r < size_; ++r) {
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->rank = r;
    if (r != rank_) listen_to(*peers_.back());
  }
  thread_ = std::thread([this] {
    try {
      work();
    } catch (...) {
      fate_->fail(rank_, std::current_exception());
      changed_.notify_all();
    }
  });
}

Courier::~Courier() {
  if (!fate_->failed()) say_goodbye();
  {
    const std::scoped_lock lock(mutex_);
    is_ending_ = true;
  }
  wire_->wake();
  thread_.join();
  fate_->failed() ? wire_->abandon() : wire_->close();
}

std::shared_ptr<Courier::Delivery> Courier::start(int channel, const std::vector<Parcel>& sends,
                                                  const std::vector<Parcel>& receives) {
  auto delivery = std::make_shared<Delivery>();
  delivery->parcels = sends;
  delivery->parcels.insert(delivery->parcels.end(), receives.begin(), receives.end());
  std::vector<Order> orders;
  for (const auto& [parcels, is_send] : {std::pair(&receives, false), std::pair(&sends, true)})
    for (const auto& parcel : *parcels) {
      if (size_of(parcel.bytes) == 0) continue;  // both sides know the sizes
      orders.push_back({is_send,
                        {parcel.peer, channel, data_of(parcel.bytes), size_of(parcel.bytes)},
                        delivery});
    }
  delivery->left = orders.size();
  {
    const std::scoped_lock lock(mutex_);
    orders_.insert(orders_.end(), orders.begin(), orders.end());
  }
  wire_->wake();
  return delivery;
}

void Courier::wait(Delivery& delivery, Patience patience) {
  auto end = Clock::now() + fate_->deadline();
  const auto awaits_those_who_left = [&] {
    return std::any_of(delivery.open.begin(), delivery.open.end(),
                       [&](const auto& open) { return peers_[std::size_t(open.peer)]->has_left; });
  };
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kGlance, [&] { return delivery.left == 0; })) {
    fate_->check();
    const auto now = Clock::now();
    if (patience == Patience::kEndless && !awaits_those_who_left()) end = now + fate_->deadline();
    if (now < end) continue;
    throw Error(text_of("waited ", double(fate_->deadline().count()) / 1000, " s for ",
                        awaited_by(delivery)));
  }
}

// Called with the lock held.
std::string Courier::awaited_by(const Delivery& delivery) {
  std::vector<int> ranks;
  for (const auto& open : delivery.open) ranks.push_back(open.peer);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string names = ranks.size() == 1 ? "rank " : "ranks ";
  for (const int rank : ranks) names += (rank == ranks.front() ? "" : ", ") + std::to_string(rank);
  return names;
}

void Courier::work() {
  while (true) {
    take_orders();
    const auto events = wire_->poll(std::chrono::milliseconds(5));
    for (const auto ticket : events.done) finish(ticket);
    for (const auto& lost : events.lost) lose(lost.peer, lost.why);
    keep_watch();
    if (fate_->failed()) react();
    const std::scoped_lock lock(mutex_);
    const auto was_told = [](const auto& peer) { return peer->saying.empty() || peer->is_lost; };
    is_silent_ = sayings_.empty() && std::all_of(peers_.begin(), peers_.end(), was_told);
    if (is_silent_) changed_.notify_all();
    if (is_ending_) return;
  }
}

void Courier::take_orders() {
  std::vector<Order> orders;
  std::vector<Saying> sayings;
  {
    const std::scoped_lock lock(mutex_);
    orders.swap(orders_);
    sayings.swap(sayings_);
  }
  for (const auto& order : orders) post(order);
  for (const auto& saying : sayings) tell(saying);
}

void Courier::post(const Order& order) {
  const auto ticket = order.is_send ? wire_->send(order.message) : wire_->receive(order.message);
  deliveries_[ticket] = order.delivery;
  const std::scoped_lock lock(mutex_);
  order.delivery->open.push_back({ticket, order.message.peer});
}

void Courier::finish(Wire::Ticket ticket) {
  if (const auto it = deliveries_.find(ticket); it != deliveries_.end()) {
    const auto delivery = it->second;
    deliveries_.erase(it);
    const std::scoped_lock lock(mutex_);
    std::erase_if(delivery->open, [&](const auto& open) { return open.ticket == ticket; });
    if (--delivery->left == 0) changed_.notify_all();
    return;
  }
  for (const auto& peer : peers_) {
    if (peer->listening == ticket && peer->rank != rank_) return hear(*peer);
    if (peer->saying.erase(ticket) > 0) return;
  }
}

void Courier::listen_to(Peer& peer) {
  peer.listening = wire_->receive(
      {peer.rank, kControl, reinterpret_cast<std::byte*>(&peer.heard), sizeof(Control)});
}

void Courier::hear(Peer& peer) {
  peer.last_heard = Clock::now();
  const auto& heard = peer.heard;
  if (heard.kind == Kind::kFailure || heard.kind == Kind::kGone) {
    const auto length = std::clamp<std::int32_t>(heard.length, 0, kLongestSentence);
    const std::string sentence(heard.sentence, std::size_t(length));
    fate_->fail(heard.culprit, heard.kind == Kind::kGone
                                   ? std::make_exception_ptr(RankIsGone(sentence))
                                   : std::make_exception_ptr(Error(sentence)));
  }
  {
    const std::scoped_lock lock(mutex_);
    peer.has_left = heard.kind == Kind::kGoodbye;
  }
  changed_.notify_all();
  if (!peer.has_left) listen_to(peer);
}

void Courier::tell(const Saying& saying) {
  for (const auto& peer : peers_) {
    const bool is_needless =
        saying.kind == Kind::kAlive && (peer->has_left || !peer->saying.empty());
    if (peer->rank == rank_ || peer->is_lost || is_needless) continue;
    auto control = std::make_unique<Control>();
    control->kind = saying.kind;
    control->culprit = saying.culprit;
    control->length = std::int32_t(std::min(saying.sentence.size(), kLongestSentence));
    std::memcpy(control->sentence, saying.sentence.data(), std::size_t(control->length));
    auto* const bytes = reinterpret_cast<std::byte*>(control.get());
    const auto ticket = wire_->send({peer->rank, kControl, bytes, sizeof(Control)});
    peer->saying[ticket] = std::move(control);
  }
}

// A rank that says nothing for a deadline is taken for dead. Time in which this process itself did
// not run (a suspended machine) does not count.
void Courier::keep_watch() {
  const auto now = Clock::now();
  const bool overslept = now - last_watch_ > fate_->deadline() / 2;
  last_watch_ = now;
  if (now - last_sign_ > interval_) {
    last_sign_ = now;
    tell({.kind = Kind::kAlive});
  }
  for (const auto& peer : peers_) {
    if (peer->rank == rank_ || peer->has_left || peer->is_lost) continue;
    if (overslept) peer->last_heard = now;
    if (now - peer->last_heard > fate_->deadline())
      lose(peer->rank,
           text_of("it has not answered for ", double(fate_->deadline().count()) / 1000, " s"));
  }
}

void Courier::lose(int peer, const std::string& why) {
  if (peers_[std::size_t(peer)]->has_left) return;
  peers_[std::size_t(peer)]->is_lost = true;
  fate_->fail(peer, std::make_exception_ptr(RankIsGone(why)));
  changed_.notify_all();
}

void Courier::on_failure(std::function<void()> action) {
  const std::scoped_lock lock(mutex_);
  on_failure_ = std::move(action);
}

void Courier::react() {
  std::function<void()> action;
  {
    const std::scoped_lock lock(mutex_);
    action.swap(on_failure_);
  }
  if (action) action();
}

void Courier::say(Saying saying) {
  {
    const std::scoped_lock lock(mutex_);
    sayings_.push_back(std::move(saying));
    is_silent_ = false;
  }
  wire_->wake();
}

void Courier::tell_failure(int culprit, const std::exception_ptr& cause) {
  say({.kind = is_gone(cause) ? Kind::kGone : Kind::kFailure,
       .culprit = culprit,
       .sentence = message_of(cause)});
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::seconds(1), [&] { return is_silent_; });
}

void Courier::say_goodbye() {
  say({.kind = Kind::kGoodbye});
  const auto all_left = [&] {
    return std::all_of(peers_.begin(), peers_.end(),
                       [&](const auto& peer) { return peer->rank == rank_ || peer->has_left; });
  };
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, fate_->deadline(),
                    [&] { return (is_silent_ && all_left()) || fate_->failed(); });
}

}  // namespace braid
