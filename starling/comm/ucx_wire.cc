// The wire over UCX: TCP, InfiniBand, RoCE. Loaded at run time (module.h).
//
// Two UCX workers, so that packets never queue behind bulk data: packets are active messages on
// the one, bulk transfers tagged messages on the other, under the receiver's number. All peers are
// in error mode PEER: such endpoints can be slept on, report a dead process, end its sends and can
// be closed; a posted receive from the dead has to be cancelled, which drop() does. (Mode NONE
// would use shared memory, but when a peer stops its queue fills, and one can neither sleep nor
// close.)
#include <ucp/api/ucp.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/wire.h"

namespace starling::comm {
namespace {

constexpr unsigned kPacketId = 0;

void require_ok(ucs_status_t status, const char* what) {
  if (status != UCS_OK) {
    throw Error(ErrorCode::Input, fmt::format("UCX: {}: {}", what, ucs_status_string(status)));
  }
}

// Before every packet: who sends it, and that it belongs to the job.
struct Envelope {
  std::uint64_t secret = 0;
  std::uint64_t from = 0;
};

// One UCX worker and its endpoints, by rank.
class Lane {
 public:
  Lane(ucp_context_h context, std::size_t peers) : endpoints_(peers, nullptr) {
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SINGLE;
    require_ok(ucp_worker_create(context, &params, &worker_), "no worker");
    require_ok(ucp_worker_get_efd(worker_, &file_), "nothing to sleep on");
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() { ucp_worker_destroy(worker_); }

  ucp_worker_h worker() const { return worker_; }
  int file() const { return file_; }
  ucp_ep_h& endpoint(Rank peer) { return endpoints_[peer.index()]; }
  std::size_t size() const { return endpoints_.size(); }

  Bytestring address() const {
    ucp_address_t* address = nullptr;
    std::size_t length = 0;
    require_ok(ucp_worker_get_address(worker_, &address, &length), "no address");
    const auto* bytes = reinterpret_cast<const std::byte*>(address);
    Bytestring copy(bytes, bytes + length);
    ucp_worker_release_address(worker_, address);
    return copy;
  }

  // Null if the peer cannot be reached, which here means that it has ended.
  void connect(Rank peer, std::span<const std::byte> address, ucp_err_handler_cb_t on_error,
               void* argument) {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {.cb = on_error, .arg = argument};
    ucp_ep_h made = nullptr;
    endpoint(peer) = ucp_ep_create(worker_, &params, &made) == UCS_OK ? made : nullptr;
  }

  // Ends at once everything that is under way on it.
  void disconnect(Rank peer) {
    ucp_ep_h ending = std::exchange(endpoint(peer), nullptr);
    if (ending == nullptr) {
      return;
    }
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    params.flags = UCP_EP_CLOSE_FLAG_FORCE;
    void* request = ucp_ep_close_nbx(ending, &params);
    if (request != nullptr && !UCS_PTR_IS_ERR(request)) {
      ucp_request_free(request);
    }
  }

 private:
  ucp_worker_h worker_ = nullptr;
  int file_ = -1;
  std::vector<ucp_ep_h> endpoints_;
};

class UcxWire final : public Wire {
 public:
  explicit UcxWire(std::size_t workers);
  ~UcxWire() override;

  Bytestring address() const override;
  void open(Rank self, std::span<const Bytestring> addresses, std::uint64_t secret,
            Listener& listener) override;
  void packet(Rank to, std::span<const std::byte> packet) override;
  void send(Rank to, std::uint64_t number, ConstBlob data, Token token) override;
  void receive(Rank from, std::uint64_t number, Blob into, Token token) override;
  void cancel_receive(Token token) override;
  void drop(Rank peer, bool left) override;
  bool progress() override;
  std::span<const int> files() const override { return files_; }
  bool arm() override;
  void close() override;

 private:
  // A transfer that UCX has.
  struct Transfer {
    UcxWire* wire = nullptr;
    Token token = 0;
    Rank peer{0};
    bool receives = false;
    void* request = nullptr;
  };
  // A packet that UCX has not sent yet.
  struct Outgoing {
    Envelope envelope;
    std::array<std::byte, kMaxPacket> bytes;
  };
  struct End {
    Token token;
    bool done;
  };

  static ucs_status_t on_packet(void* self, const void* header, std::size_t header_length,
                                void* data, std::size_t length, const ucp_am_recv_param_t* param);
  static void on_error(void* link, ucp_ep_h endpoint, ucs_status_t status);
  static void on_sent(void* request, ucs_status_t status, void* transfer);
  static void on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                          void* transfer);
  static void on_packet_sent(void* request, ucs_status_t status, void* outgoing);
  void start(Transfer& transfer, void* request);
  void end(Transfer& transfer, bool done);

  ucp_context_h context_ = nullptr;
  std::unique_ptr<Lane> packets_;
  std::unique_ptr<Lane> bulk_;
  std::array<int, 2> files_{-1, -1};
  Envelope envelope_;
  Listener* listener_ = nullptr;
  struct Link {
    UcxWire* wire;
    Rank peer;
  };
  std::vector<Link> links_;  // what UCX's error handler is given, by rank
  std::vector<Rank> broken_;
  std::vector<End> ends_;
  std::unordered_map<Token, std::unique_ptr<Transfer>> transfers_;
  std::vector<std::unique_ptr<Outgoing>> spare_;
  bool closed_ = false;
};

UcxWire::UcxWire(std::size_t workers) {
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = workers;
  ucp_config_t* config = nullptr;
  require_ok(ucp_config_read(nullptr, nullptr, &config), "its configuration");
  const ucs_status_t status = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  require_ok(status, "no context");
  packets_ = std::make_unique<Lane>(context_, workers);
  bulk_ = std::make_unique<Lane>(context_, workers);
  files_ = {packets_->file(), bulk_->file()};
}

UcxWire::~UcxWire() {
  close();
  packets_.reset();
  bulk_.reset();
  ucp_cleanup(context_);
}

// Both addresses, the length of the first before it.
Bytestring UcxWire::address() const {
  const Bytestring first = packets_->address();
  const Bytestring second = bulk_->address();
  const std::uint32_t length = static_cast<std::uint32_t>(first.size());
  Bytestring both(sizeof(length) + first.size() + second.size());
  std::memcpy(both.data(), &length, sizeof(length));
  std::memcpy(both.data() + sizeof(length), first.data(), first.size());
  std::memcpy(both.data() + sizeof(length) + first.size(), second.data(), second.size());
  return both;
}

void UcxWire::open(Rank self, std::span<const Bytestring> addresses, std::uint64_t secret,
                   Listener& listener) {
  listener_ = &listener;
  envelope_ = {.secret = secret, .from = self.value};
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kPacketId;
  handler.cb = on_packet;
  handler.arg = this;
  require_ok(ucp_worker_set_am_recv_handler(packets_->worker(), &handler), "no handler");
  for (std::uint32_t r = 0; r < addresses.size(); ++r) {
    links_.push_back({this, Rank{r}});
  }
  for (std::uint32_t r = 0; r < addresses.size(); ++r) {
    const Bytestring& both = addresses[r];
    std::uint32_t length = 0;
    if (r == self.value) {
      continue;
    }
    require(both.size() > sizeof(length), "worker {} gave no UCX address", r);
    std::memcpy(&length, both.data(), sizeof(length));
    require(sizeof(length) + length < both.size(), "worker {} gave half a UCX address", r);
    const auto bytes = std::span(both).subspan(sizeof(length));
    packets_->connect(Rank{r}, bytes.first(length), on_error, &links_[r]);
    bulk_->connect(Rank{r}, bytes.subspan(length), on_error, &links_[r]);
    if (packets_->endpoint(Rank{r}) == nullptr || bulk_->endpoint(Rank{r}) == nullptr) {
      broken_.push_back(Rank{r});
    }
  }
}

void UcxWire::packet(Rank to, std::span<const std::byte> packet) {
  ucp_ep_h endpoint = packets_->endpoint(to);
  if (endpoint == nullptr) {
    return;
  }
  if (spare_.empty()) {
    spare_.push_back(std::make_unique<Outgoing>());
  }
  Outgoing* outgoing = spare_.back().get();
  outgoing->envelope = envelope_;
  std::memcpy(outgoing->bytes.data(), packet.data(), packet.size());
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = on_packet_sent;
  params.user_data = outgoing;
  void* request = ucp_am_send_nbx(endpoint, kPacketId, &outgoing->envelope, sizeof(Envelope),
                                  outgoing->bytes.data(), packet.size(), &params);
  if (request != nullptr && !UCS_PTR_IS_ERR(request)) {
    // UCX has it; on_packet_sent() owns it now.
    [[maybe_unused]] const Outgoing* taken = spare_.back().release();
    spare_.pop_back();
  }
}

void UcxWire::on_packet_sent(void* request, ucs_status_t, void* outgoing) {
  delete static_cast<Outgoing*>(outgoing);
  ucp_request_free(request);
}

ucs_status_t UcxWire::on_packet(void* self, const void* header, std::size_t header_length,
                                void* data, std::size_t length, const ucp_am_recv_param_t*) {
  auto& wire = *static_cast<UcxWire*>(self);
  Envelope envelope;
  if (header_length == sizeof(envelope)) {
    std::memcpy(&envelope, header, sizeof(envelope));
    if (envelope.secret == wire.envelope_.secret && envelope.from < wire.links_.size() &&
        length <= kMaxPacket) {
      wire.listener_->on_packet(Rank{static_cast<std::uint32_t>(envelope.from)},
                                {static_cast<const std::byte*>(data), length});
    }
  }
  return UCS_OK;
}

void UcxWire::on_error(void* link, ucp_ep_h, ucs_status_t) {
  const Link& broken = *static_cast<Link*>(link);
  broken.wire->broken_.push_back(broken.peer);
}

void UcxWire::send(Rank to, std::uint64_t number, ConstBlob data, Token token) {
  ucp_ep_h endpoint = bulk_->endpoint(to);
  if (endpoint == nullptr) {
    ends_.push_back({token, false});
    return;
  }
  auto transfer = std::make_unique<Transfer>(Transfer{.wire = this, .token = token, .peer = to});
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = on_sent;
  params.user_data = transfer.get();
  void* request = ucp_tag_send_nbx(endpoint, data.data, data.size, number, &params);
  start(*transfers_.emplace(token, std::move(transfer)).first->second, request);
}

void UcxWire::receive(Rank from, std::uint64_t number, Blob into, Token token) {
  if (bulk_->endpoint(from) == nullptr) {
    ends_.push_back({token, false});
    return;
  }
  auto transfer = std::make_unique<Transfer>(
      Transfer{.wire = this, .token = token, .peer = from, .receives = true});
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.recv = on_received;
  params.user_data = transfer.get();
  void* request =
      ucp_tag_recv_nbx(bulk_->worker(), into.data, into.size, number, ~ucp_tag_t{0}, &params);
  start(*transfers_.emplace(token, std::move(transfer)).first->second, request);
}

// `request` is what UCX answered: null if all is done already, an error, or under way.
void UcxWire::start(Transfer& transfer, void* request) {
  if (request == nullptr || UCS_PTR_IS_ERR(request)) {
    return end(transfer, request == nullptr);
  }
  transfer.request = request;
}

void UcxWire::end(Transfer& transfer, bool done) {
  ends_.push_back({transfer.token, done});
  transfers_.erase(transfer.token);
}

void UcxWire::on_sent(void* request, ucs_status_t status, void* transfer) {
  Transfer& ended = *static_cast<Transfer*>(transfer);
  ended.wire->end(ended, status == UCS_OK);
  ucp_request_free(request);
}

void UcxWire::on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t*,
                          void* transfer) {
  on_sent(request, status, transfer);
}

void UcxWire::cancel_receive(Token token) {
  if (const auto known = transfers_.find(token); known != transfers_.end()) {
    ucp_request_cancel(bulk_->worker(), known->second->request);
  }
}

void UcxWire::drop(Rank peer, bool) {
  packets_->disconnect(peer);
  bulk_->disconnect(peer);
  std::vector<void*> receives;
  for (const auto& [token, transfer] : transfers_) {
    if (transfer->peer == peer && transfer->receives) {
      receives.push_back(transfer->request);
    }
  }
  for (void* request : receives) {
    ucp_request_cancel(bulk_->worker(), request);
  }
}

bool UcxWire::progress() {
  bool any = ucp_worker_progress(packets_->worker()) != 0;
  any = ucp_worker_progress(bulk_->worker()) != 0 || any || !broken_.empty() || !ends_.empty();
  for (const Rank peer : std::exchange(broken_, {})) {
    if (packets_->endpoint(peer) != nullptr || bulk_->endpoint(peer) != nullptr) {
      listener_->on_broken(peer);
    }
  }
  for (const End& ended : std::exchange(ends_, {})) {
    listener_->on_transfer(ended.token, ended.done);
  }
  return any;
}

bool UcxWire::arm() {
  return broken_.empty() && ends_.empty() && ucp_worker_arm(packets_->worker()) == UCS_OK &&
         ucp_worker_arm(bulk_->worker()) == UCS_OK;
}

void UcxWire::close() {
  if (std::exchange(closed_, true)) {
    return;
  }
  for (std::uint32_t r = 0; r < packets_->size(); ++r) {
    drop(Rank{r}, true);
  }
  // Forced closing and cancelling end everything within a few turns.
  for (int i = 0; i < 1000 && (progress() || !transfers_.empty()); ++i) {
  }
}

}  // namespace
}  // namespace starling::comm

extern "C" starling::comm::Wire* starling_make_wire(std::size_t workers) {
  return std::make_unique<starling::comm::UcxWire>(workers).release();
}
