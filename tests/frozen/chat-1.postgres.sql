CREATE TABLE public.rethread_chunks (
    session bytea NOT NULL,
    record_table bigint NOT NULL,
    key bigint NOT NULL,
    part bigint NOT NULL,
    value bytea NOT NULL
);
CREATE TABLE public.rethread_heads (
    session bytea NOT NULL,
    id bytea,
    revision bigint NOT NULL,
    deleted bigint NOT NULL,
    pending bigint NOT NULL,
    channel bytea,
    size bigint NOT NULL,
    value bytea
);
CREATE TABLE public.rethread_log (
    session bytea NOT NULL,
    key bigint NOT NULL,
    last_key bigint,
    size bigint NOT NULL,
    value bytea NOT NULL
);
CREATE TABLE public.rethread_operations (
    session bytea NOT NULL,
    revision bigint NOT NULL,
    operation bytea NOT NULL
);
CREATE TABLE public.rethread_runs (
    session bytea NOT NULL,
    key bigint NOT NULL,
    last_key bigint,
    size bigint NOT NULL,
    value bytea NOT NULL
);
CREATE TABLE public.rethread_schema (
    application character varying(16) NOT NULL,
    version integer NOT NULL
);
CREATE TABLE public.rethread_tool_invocations (
    session bytea NOT NULL,
    key bigint NOT NULL,
    last_key bigint,
    size bigint NOT NULL,
    value bytea NOT NULL,
    tool bytea,
    status bytea,
    channel bytea,
    at bigint
);
INSERT INTO public.rethread_heads VALUES ('\x63686174', NULL, 2, 0, 0, '\x776562', 99, '\x010101665b6034af006463686174011b0000018bcfe568000201031b0000018bcfe568000464436174730563776562066e7b226f776e6572223a227531227d088182646d6f6f646b7b226c6576656c223a337d09020a050b020c020e020f19023a1020');
INSERT INTO public.rethread_heads VALUES ('\x64656c65746564', NULL, 2, 1, 0, NULL, 0, NULL);
INSERT INTO public.rethread_heads VALUES ('\x637574206f6666', NULL, 1, 0, 0, '\x6d61696c', 82, '\x010101a89c3996a80067637574206f6666011b0000018bcfe568000201031b0000018bcfe5680005646d61696c0d0110201181a5006469642d3802010301041b0000018bcfe5dd30051b0000018bcfe56800');
INSERT INTO public.rethread_log VALUES ('\x63686174', 0, NULL, 461, '\x0101021542dd3ea400706639347033786a7a6178656668337462021b0000018bcfe5680003aa000101010201031b0000018bcfe5680004644361747305637765620605070209020a2004878200a5006469642d3103020482a1008200752257686174206973206f6e2069743f20f09f908822a1008201a2016a226956424f52773d3d220369696d6167652f706e67051b0000018bcfe5680008008200a6006469642d32010103030481a10084066469642d350000051b0000018bcfe5680008008201aa006469642d35036469642d320562633107646c6f6f6b088201687b226174223a317d0b010d1b0000018bcfe568000e1b0000018bcfe56800106377656213a1006f7b22666f756e64223a22636174227d8200a6006669642d322e32010203030481a1008200682241206361742e22051b0000018bcfe5680008008200a7006469642d330103020103020481a10082006c22416e642074686572653f22051b0000018bcfe5680008008200a7006469642d340104020103030481a10084066469642d360000051b0000018bcfe5680008008201aa006469642d360101036469642d3404010562633207646c6f6f6b088201687b226174223a327d0b000e1b0000018bcfe568001063776562');
INSERT INTO public.rethread_log VALUES ('\x63686174', 1, NULL, 109, '\x0101026b22a44fa400703576716767653978737770376a663476021b0000018bcfe5680003aa000201020201031b0000018bcfe5680004644361747305637765620605070209020a2004818202a4006469642d360102031b0000018bcfe5680005a20067226120646f672201f5');
INSERT INTO public.rethread_operations VALUES ('\x63686174', 1, '\x6639347033786a7a61786566683374622e30');
INSERT INTO public.rethread_operations VALUES ('\x63686174', 2, '\x3576716767653978737770376a6634762e30');
INSERT INTO public.rethread_operations VALUES ('\x64656c65746564', 1, '\x616134716e6861326a723164726d36782e30');
INSERT INTO public.rethread_operations VALUES ('\x637574206f6666', 1, '\x68326b7a796e3577766d6a66357772362e312e30');
INSERT INTO public.rethread_runs VALUES ('\x637574206f6666', 0, NULL, 196, '\x3e000000010105fe20e819a5006469642d380101021b0000018bcfe5dd30031b0000018bcfe5680005a600010201031b0000018bcfe5680005646d61696c08010a200101048b5279f88200a4006469642d38011b0000018bcfe5680002a30000017826687474703a2f2f3132372e302e302e313a312f76312f636861742f636f6d706c6574696f6e73026d7b226d6f64656c223a226d227d0381a6006469642d3903020481a1008200682248656c6c6f3f22051b0000018bcfe56800076469642d380800');
INSERT INTO public.rethread_schema VALUES ('rethread', 1);
INSERT INTO public.rethread_tool_invocations VALUES ('\x63686174', 0, NULL, 61, '\x0101030597f790aa006469642d35026469642d320462633105646c6f6f6b08010a1b0000018bcfe568000b1b0000018bcfe568000d637765620e080f0f', '\x6c6f6f6b', '\x6f6b', '\x776562', 1700000000000);
INSERT INTO public.rethread_tool_invocations VALUES ('\x63686174', 1, NULL, 67, '\x0101032cb25d3cad006469642d360101026469642d3403010462633205646c6f6f6b08020a1b0000018bcfe568000b1b0000018bcfe568000d637765620e080f071101', '\x6c6f6f6b', '\x6572726f72', '\x776562', 1700000000000);
ALTER TABLE ONLY public.rethread_chunks
    ADD CONSTRAINT rethread_chunks_pkey PRIMARY KEY (session, record_table, key, part);
ALTER TABLE ONLY public.rethread_heads
    ADD CONSTRAINT rethread_heads_pkey PRIMARY KEY (session);
ALTER TABLE ONLY public.rethread_log
    ADD CONSTRAINT rethread_log_pkey PRIMARY KEY (session, key);
ALTER TABLE ONLY public.rethread_operations
    ADD CONSTRAINT rethread_operations_pkey PRIMARY KEY (session, revision);
ALTER TABLE ONLY public.rethread_runs
    ADD CONSTRAINT rethread_runs_pkey PRIMARY KEY (session, key);
ALTER TABLE ONLY public.rethread_schema
    ADD CONSTRAINT rethread_schema_pkey PRIMARY KEY (application);
ALTER TABLE ONLY public.rethread_tool_invocations
    ADD CONSTRAINT rethread_tool_invocations_pkey PRIMARY KEY (session, key);
CREATE INDEX rethread_heads_channel ON public.rethread_heads USING btree (substr(channel, 1, 200), session) WHERE (channel IS NOT NULL);
CREATE INDEX rethread_log_last_key ON public.rethread_log USING btree (session, last_key) WHERE (last_key IS NOT NULL);
CREATE INDEX rethread_runs_last_key ON public.rethread_runs USING btree (session, last_key) WHERE (last_key IS NOT NULL);
CREATE INDEX rethread_tool_invocations_at ON public.rethread_tool_invocations USING btree (at, session, key);
CREATE INDEX rethread_tool_invocations_channel ON public.rethread_tool_invocations USING btree (substr(channel, 1, 200), session, key);
CREATE INDEX rethread_tool_invocations_last_key ON public.rethread_tool_invocations USING btree (session, last_key) WHERE (last_key IS NOT NULL);
CREATE INDEX rethread_tool_invocations_status ON public.rethread_tool_invocations USING btree (substr(status, 1, 200), session, key);
CREATE INDEX rethread_tool_invocations_tool ON public.rethread_tool_invocations USING btree (substr(tool, 1, 200), session, key);