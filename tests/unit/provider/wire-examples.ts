/** Elements in SnapTrade's wire shape (API reference), as JSON text, so that numbers keep their spelling. */

export const BALANCE =
  '{"currency":{"id":"c-1","code":"USD","name":"US Dollar"},"cash":300.71,"buying_power":1410.710}';

export const STOCK = `{"instrument":{"kind":"stock","id":"i-vab","symbol":"VAB.TO","raw_symbol":"VAB","description":"Vanguard","currency":"CAD","exchange":"XTSE"},
  "units":"0.123456789012345678","price":"24.150","cost_basis":null,"currency":"CAD","tax_lots":[{"quantity":"1.0"}]}`;

export const OPTION = `{"instrument":{"kind":"option","id":"i-opt","symbol":"AAPL  261218C00240000","option_type":"CALL","strike_price":"240.00","expiration_date":"2026-12-18","multiplier":"100",
  "description":null,"underlying":{"kind":"stock","symbol":"AAPL"}},"units":"-2","price":"38.40","cost_basis":"4126.00","currency":"USD","cash_equivalent":false}`;

export const ORDER = `{"brokerage_order_id":"66a033fa","status":"EXECUTED","action":"BUY","universal_symbol":{"id":"u-1","symbol":"VAB.TO","raw_symbol":"VAB"},"option_symbol":null,
  "total_quantity":"100","open_quantity":"0","canceled_quantity":"0","filled_quantity":"100","execution_price":"12.34","limit_price":null,"stop_price":null,
  "order_type":"Market","time_in_force":"FOK","time_placed":"2024-07-23T22:50:22.761Z","time_updated":"2024-07-23T22:50:23.123456+00:00","time_executed":null,"symbol":"legacy-id"}`;

export const ACTIVITY = `{"id":"t-1","symbol":{"id":"u-1","symbol":"VAB.TO","raw_symbol":"VAB"},"option_symbol":null,"price":0.4,"units":5.2,"amount":263.82,"currency":{"id":"c-1","code":"USD"},"type":"BUY",
  "option_type":"","description":"WALT DISNEY","trade_date":"2024-03-22T16:27:55.000Z","settlement_date":"2024-03-26T00:00:00Z","fee":0,"fx_rate":1.032,"institution":"Robinhood","external_reference_id":"r-1"}`;

export const ACCOUNT = `{"id":"acct-1","brokerage_authorization":"conn-1","name":"Margin","number":"Q6542138443","institution_account_id":"inst-1","institution_name":"Robinhood",
  "sync_status":{"transactions":{"initial_sync_completed":true,"last_successful_sync":"2022-01-24","first_transaction_date":"2022-01-24"},
  "holdings":{"initial_sync_completed":true,"last_successful_sync":"2024-06-28 18:42:46.561408+00:00","holdings_unavailable":false}},
  "balance":{"total":{"amount":15363.23,"currency":"USD"}},"status":"open","is_paper":false}`;

export const CONNECTION = `{"id":"conn-1","brokerage":{"slug":"QUESTRADE","name":"Questrade"},"name":"Connection-1","type":"read","disabled":false,"disabled_date":null,
  "data_freshness_mode":{"institution":"realtime","snaptrade":"delayed"}}`;

export const positions = (...elements: string[]) =>
  `{"results":[${elements.join(",")}],"data_freshness":{"as_of":"2026-11-29T11:00:00Z"}}`;

export const activities = (elements: string[], total = elements.length, offset = 0) =>
  `{"data":[${elements.join(",")}],"pagination":{"offset":${offset},"limit":1000,"total":${total}}}`;
